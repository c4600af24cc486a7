// Package broker makes a Kafka client from the configuration of the Collector's Kafka components: the same keys mean the same.
package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-msk-iam-sasl-signer-go/signer"
	krb5client "github.com/jcmturner/gokrb5/v8/client"
	krb5config "github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/kafka/configkafka"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/twmb/franz-go/plugin/kzap"
	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
)

// Options returns the options of a client: addresses, version, TLS and login. An error names the key of the setting.
func Options(ctx context.Context, host component.Host, cfg *configkafka.ClientConfig, log *zap.Logger) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...), kgo.ClientID(cfg.ClientID), kgo.ConnIdleTimeout(cfg.ConnIdleTimeout), kgo.DisableClientMetrics(),
		// Of the client's own messages only warnings and errors are logged.
		kgo.WithLogger(kzap.New(log.Named("kafka"), kzap.Level(kgo.LogLevelWarn))),
	}
	if cfg.RackID != "" {
		opts = append(opts, kgo.Rack(cfg.RackID))
	}
	if every := cfg.Metadata.RefreshInterval; every > 0 {
		opts = append(opts, kgo.MetadataMaxAge(every))
	}
	if v := cfg.ProtocolVersion; v != "" {
		opts = append(opts, kgo.MinVersions(kversion.FromString(v)), kgo.MaxVersions(kversion.FromString(v)))
	}
	tls := cfg.TLS
	if tls == nil {
		tls = cfg.Authentication.TLS // the deprecated place of the key
	}
	if tls != nil {
		loaded, err := tls.LoadTLSConfig(ctx)
		if err != nil {
			return nil, fmt.Errorf("'kafka::tls': %w", err)
		}
		if loaded != nil {
			opts = append(opts, kgo.DialTLSConfig(loaded))
		}
	}
	login, err := mechanism(host, &cfg.Authentication)
	if err != nil {
		return nil, fmt.Errorf("'kafka::auth::%w", err)
	}
	if login != nil {
		opts = append(opts, kgo.SASL(login))
	}
	return opts, nil
}

// Group returns the options of a member of a consumer group: its fetches, where a partition begins without a committed offset, and how the members share the
// partitions. A strategy may be an extension of the Collector's.
func Group(host component.Host, cfg *configkafka.ConsumerConfig) ([]kgo.Opt, error) {
	reset := kgo.NewOffset().AtStart()
	if cfg.InitialOffset == configkafka.LatestOffset {
		reset = kgo.NewOffset().AtEnd()
	}
	opts := []kgo.Opt{
		kgo.ConsumerGroup(cfg.GroupID), kgo.SessionTimeout(cfg.SessionTimeout), kgo.HeartbeatInterval(cfg.HeartbeatInterval), kgo.ConsumeResetOffset(reset),
		kgo.FetchMinBytes(cfg.MinFetchSize), kgo.FetchMaxBytes(cfg.MaxFetchSize), kgo.FetchMaxPartitionBytes(cfg.MaxPartitionFetchSize),
		kgo.FetchMaxWait(cfg.MaxFetchWait),
	}
	if cfg.GroupInstanceID != "" {
		opts = append(opts, kgo.InstanceID(cfg.GroupInstanceID))
	}
	strategies := cfg.GroupRebalanceStrategies
	if s := cfg.GroupRebalanceStrategy; s != "" {
		strategies = []configkafka.GroupRebalanceStrategy{s}
	}
	balancers := []kgo.GroupBalancer{}
	for _, s := range strategies {
		b, err := balancer(host, s)
		if err != nil {
			return nil, fmt.Errorf("'kafka::group_rebalance_strategies': %w", err)
		}
		balancers = append(balancers, b)
	}
	if len(balancers) == 0 {
		balancers = append(balancers, kgo.CooperativeStickyBalancer())
	}
	return append(opts, kgo.Balancers(balancers...)), nil
}

// For a named extension that is missing, or of another kind.
const (
	absent = "extension %q is not configured: list it in 'service::extensions'"
	other  = "extension %q is %s"
)

const strategies = "range, roundrobin, sticky and cooperative-sticky"

// balancer returns a strategy of sharing partitions, by name, or by the id of the extension with the strategy.
func balancer(host component.Host, strategy configkafka.GroupRebalanceStrategy) (kgo.GroupBalancer, error) {
	switch strategy {
	case configkafka.RangeBalanceStrategy:
		return kgo.RangeBalancer(), nil
	case configkafka.RoundRobinBalanceStrategy:
		return kgo.RoundRobinBalancer(), nil
	case configkafka.StickyBalanceStrategy:
		return kgo.StickyBalancer(), nil
	case configkafka.CooperativeStickyBalanceStrategy:
		return kgo.CooperativeStickyBalancer(), nil
	}
	var id component.ID
	if err := id.UnmarshalText([]byte(strategy)); err != nil {
		return nil, err
	}
	ext, ok := host.GetExtensions()[id]
	if !ok {
		return nil, fmt.Errorf(absent+", or name one of "+strategies, id)
	}
	b, ok := ext.(kgo.GroupBalancer)
	if !ok {
		return nil, fmt.Errorf(other, id, "no strategy: name one of "+strategies)
	}
	return b, nil
}

var errMechanism = errors.New("sasl::mechanism' must be PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM_OAUTHBEARER")

// mechanism returns the login of the client; nil: none. An error begins with the rest of the key after 'kafka::auth::, and its closing quote.
func mechanism(host component.Host, cfg *configkafka.AuthenticationConfig) (sasl.Mechanism, error) {
	switch {
	case cfg.Kerberos != nil:
		return krb5(cfg.Kerberos)
	case cfg.PlainText != nil:
		return plain.Auth{User: cfg.PlainText.Username, Pass: cfg.PlainText.Password}.AsMechanism(), nil
	case cfg.SASL == nil:
		return nil, nil //nolint:nilnil // as said above
	}
	s := cfg.SASL
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.Username, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return scram.Auth{User: s.Username, Pass: s.Password}.AsSha512Mechanism(), nil
	case "AWS_MSK_IAM_OAUTHBEARER":
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, _, err := signer.GenerateAuthToken(ctx, s.AWSMSK.Region)
			return oauth.Auth{Token: token}, err
		}), nil
	case "OAUTHBEARER":
		ext, ok := host.GetExtensions()[s.OAuthBearerTokenSource]
		if !ok {
			return nil, fmt.Errorf("sasl::oauthbearer_token_source': "+absent, s.OAuthBearerTokenSource)
		}
		tokens, ok := ext.(interface {
			Token(ctx context.Context) (*oauth2.Token, error)
		})
		if !ok {
			return nil, fmt.Errorf("sasl::oauthbearer_token_source': "+other, s.OAuthBearerTokenSource, "no source of tokens: name one such as oauth2client")
		}
		return oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := tokens.Token(ctx)
			if err != nil {
				return oauth.Auth{}, err
			}
			return oauth.Auth{Token: token.AccessToken}, nil
		}), nil
	}
	return nil, errMechanism
}

// krb5 returns the login by Kerberos, with a keytab if named, else with the password. The realm's servers are in Kerberos' own file of configuration. Errors
// are as those of mechanism.
func krb5(cfg *configkafka.KerberosConfig) (sasl.Mechanism, error) {
	realm := krb5config.New()
	if cfg.ConfigPath != "" {
		var err error
		realm, err = krb5config.Load(cfg.ConfigPath)
		if err != nil {
			return nil, fmt.Errorf("kerberos::config_file': %w", err)
		}
	}
	fast := krb5client.DisablePAFXFAST(cfg.DisablePAFXFAST)
	auth := kerberos.Auth{Service: cfg.ServiceName}
	if cfg.KeyTabPath == "" {
		auth.Client = krb5client.NewWithPassword(cfg.Username, cfg.Realm, cfg.Password, realm, fast)
		return auth.AsMechanism(), nil
	}
	keys, err := keytab.Load(cfg.KeyTabPath)
	if err != nil {
		return nil, fmt.Errorf("kerberos::keytab_file': %w", err)
	}
	auth.Client = krb5client.NewWithKeytab(cfg.Username, cfg.Realm, keys, realm, fast)
	return auth.AsMechanism(), nil
}
