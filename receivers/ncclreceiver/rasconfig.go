package ncclreceiver

import (
	"errors"
	"net"
	"time"

	"github.com/trainbridge/trainbridge/internal/ncclras"
)

// RASConfig configures the questions to NCCL's RAS server about a live job, to see a hang before a watchdog ends the job. Off without `ras`.
type RASConfig struct {
	// Endpoint is host:port of the job's processes: the NCCL_RAS_ADDR of the job, else localhost:28028 (default). RAS has no authentication.
	Endpoint string `mapstructure:"endpoint"`
	// Interval is the time from question to question. Each question has RAS ask all processes of the job. Default 60s.
	Interval time.Duration `mapstructure:"interval"`
	// Timeout bounds a question and its answer. RAS itself waits up to 10 s for silent processes, times NCCL_RAS_TIMEOUT_FACTOR. Default 20s.
	Timeout time.Duration `mapstructure:"timeout"`
	// AllowNCCL228 has NCCL 2.28.7 to 2.28.9 asked too, where a question may crash the job while communicators are made or ranks are missing. Default false.
	AllowNCCL228 bool `mapstructure:"allow_nccl_2_28"`
}

func defaultRASConfig() RASConfig {
	return RASConfig{Endpoint: ncclras.DefaultEndpoint, Interval: time.Minute, Timeout: 20 * time.Second}
}

// minRASTimeout is longer than RAS waits for its processes: leaving before has a thread of the job spin (ncclras.Client.Ask).
const minRASTimeout = 11 * time.Second

var (
	errRASEndpoint = errors.New("'ras::endpoint' must be host:port, such as localhost:28028: what NCCL_RAS_ADDR says in the job")
	errRASTimeout  = errors.New("'ras::timeout' must be at least 11s, 20s by default: RAS itself waits up to 10 s for processes that do not answer")
	errRASInterval = errors.New("'ras::interval' must not be shorter than 'ras::timeout': 60s by default")
)

// check calls check with each condition of the configuration, and the error if the condition is false.
func (c *RASConfig) check(check func(ok bool, err error)) {
	host, port, err := net.SplitHostPort(c.Endpoint)
	check(err == nil && host != "" && port != "", errRASEndpoint)
	check(c.Timeout >= minRASTimeout, errRASTimeout)
	check(c.Interval >= c.Timeout, errRASInterval)
}
