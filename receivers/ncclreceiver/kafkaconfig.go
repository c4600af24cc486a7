package ncclreceiver

import (
	"errors"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/kafka/configkafka"
)

// KafkaConfig is the topic with the records read by other collectors (`join: remote`), in place of files. The keys are those of the Collector's Kafka
// components.
type KafkaConfig struct {
	configkafka.ClientConfig   `mapstructure:",squash"`
	configkafka.ConsumerConfig `mapstructure:",squash"`
	// Topic is where the records are. Default otlp_nccl.
	Topic string `mapstructure:"topic"`
	// LookBack is the number of messages of a partition that are read again after a start or a takeover, to compare new collectives with earlier ones. Default
	// 4096.
	LookBack int64 `mapstructure:"look_back"`
}

func defaultKafkaConfig() KafkaConfig {
	c := KafkaConfig{
		ClientConfig: configkafka.NewDefaultClientConfig(), ConsumerConfig: configkafka.NewDefaultConsumerConfig(), Topic: "otlp_nccl", LookBack: 4096,
	}
	c.GroupID, c.InitialOffset, c.ClientID = "trainbridge-nccl", configkafka.EarliestOffset, "trainbridge"
	return c
}

var (
	errTopic      = errors.New("'kafka::topic' must name a topic, such as otlp_nccl")
	errGroup      = errors.New("'kafka::group_id' must name a consumer group: gateways of one group share the partitions")
	errLookBack   = errors.New("'kafka::look_back' must not be negative: messages, 4096 by default")
	errAutoCommit = errors.New("'kafka::autocommit::enable' must be true, and 'kafka::autocommit::interval' above zero: " +
		"offsets are committed when what the messages became was accepted")
)

// check calls check with each condition that configkafka does not check, and the error if the condition is false.
func (c *KafkaConfig) check(check func(ok bool, err error)) {
	check(c.Topic != "", errTopic)
	check(c.GroupID != "", errGroup)
	check(c.LookBack >= 0, errLookBack)
	check(c.AutoCommit.Enable && c.AutoCommit.Interval > 0, errAutoCommit)
}

// Contradictions with other keys.
var (
	errFilesToo = errors.New("'kafka' is read in place of files: " +
		"leave out 'include', 'include_by_content' and 'document', or make two receivers of it, such as nccl/files")
	errKafkaRemote = errors.New("'kafka' is where the records of other collectors are joined: leave out 'join: remote', which is for those that read the logs")
)
