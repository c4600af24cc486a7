package broker

import (
	"context"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/kafka/configkafka"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configtls"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"golang.org/x/oauth2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host has an extension of each name.
type host map[string]component.Component

func (h host) GetExtensions() map[component.ID]component.Component {
	out := make(map[component.ID]component.Component)
	for name, e := range h {
		out[component.MustNewID(name)] = e
	}
	return out
}

// tokens is an extension that gives a token.
type tokens struct{ component.Component }

func (tokens) Token(context.Context) (*oauth2.Token, error) {
	return &oauth2.Token{AccessToken: "token"}, nil
}

// strategy is an extension that balances.
type strategy struct {
	component.Component
	kgo.GroupBalancer
}

func TestLogin(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "gateway", "secret"))
	require.NoError(t, err)
	defer fake.Close()
	for password, ok := range map[string]bool{"secret": true, "guess": false} {
		cfg := configkafka.NewDefaultClientConfig()
		cfg.Brokers, cfg.RackID, cfg.ProtocolVersion = fake.ListenAddrs(), "rack", "3.9.0"
		cfg.Authentication.SASL = &configkafka.SASLConfig{Mechanism: "SCRAM-SHA-256", Username: "gateway", Password: password}
		opts, err := Options(t.Context(), componenttest.NewNopHost(), &cfg, zap.NewNop())
		require.NoError(t, err)
		client, err := kgo.NewClient(append(opts, kgo.RequestRetries(0))...)
		require.NoError(t, err)
		assert.Equal(t, ok, client.Ping(t.Context()) == nil, password)
		client.Close()
	}
}

func TestOptions(t *testing.T) {
	id := component.MustNewID("oauth2client")
	for name, c := range map[string]struct {
		auth configkafka.AuthenticationConfig
		tls  *configtls.ClientConfig
		host host
		want string // the error; empty: none
	}{
		"none":       {},
		"plain":      {auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "PLAIN"}}},
		"plain text": {auth: configkafka.AuthenticationConfig{PlainText: &configkafka.PlainTextConfig{Username: "a", Password: "b"}}},
		"512":        {auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "SCRAM-SHA-512"}}},
		"aws":        {auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "AWS_MSK_IAM_OAUTHBEARER"}}},
		"tokens": {
			auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "OAUTHBEARER", OAuthBearerTokenSource: id}},
			host: host{"oauth2client": tokens{}},
		},
		"no tokens": {
			auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "OAUTHBEARER", OAuthBearerTokenSource: id}},
			want: `'kafka::auth::sasl::oauthbearer_token_source': extension "oauth2client" is not configured: list it in 'service::extensions'`,
		},
		"other extension": {
			auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "OAUTHBEARER", OAuthBearerTokenSource: id}},
			host: host{"oauth2client": nil},
			want: `'kafka::auth::sasl::oauthbearer_token_source': extension "oauth2client" is no source of tokens: name one such as oauth2client`,
		},
		"mechanism": {
			auth: configkafka.AuthenticationConfig{SASL: &configkafka.SASLConfig{Mechanism: "GSSAPI"}},
			want: "'kafka::auth::sasl::mechanism' must be PLAIN, SCRAM-SHA-256",
		},
		"kerberos":   {auth: configkafka.AuthenticationConfig{Kerberos: &configkafka.KerberosConfig{Username: "a", Password: "b"}}},
		"keytab":     {auth: configkafka.AuthenticationConfig{Kerberos: &configkafka.KerberosConfig{KeyTabPath: "none"}}, want: "'kafka::auth::kerberos::keytab_file': "},
		"krb5":       {auth: configkafka.AuthenticationConfig{Kerberos: &configkafka.KerberosConfig{ConfigPath: "none"}}, want: "'kafka::auth::kerberos::config_file': "},
		"tls":        {tls: &configtls.ClientConfig{}},
		"no tls":     {tls: &configtls.ClientConfig{Insecure: true}},
		"broken tls": {tls: &configtls.ClientConfig{Config: configtls.Config{CAFile: "none"}}, want: "'kafka::tls': "},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configkafka.NewDefaultClientConfig()
			cfg.Authentication, cfg.TLS = c.auth, c.tls
			opts, err := Options(t.Context(), c.host, &cfg, zap.NewNop())
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				return
			}
			require.NoError(t, err)
			client, err := kgo.NewClient(opts...)
			require.NoError(t, err)
			client.Close()
		})
	}
}

func TestGroup(t *testing.T) {
	for name, want := range map[string]string{
		"":                   "",
		"range":              "",
		"roundrobin":         "",
		"sticky":             "",
		"cooperative-sticky": "",
		"mine":               "",
		"absent":             `'kafka::group_rebalance_strategies': extension "absent" is not configured: list it in 'service::extensions'`,
		"other":              `'kafka::group_rebalance_strategies': extension "other" is no strategy: name one of range, roundrobin, sticky and cooperative-sticky`,
		"no name!":           "'kafka::group_rebalance_strategies': ",
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configkafka.NewDefaultConsumerConfig()
			cfg.GroupRebalanceStrategy, cfg.GroupInstanceID = configkafka.GroupRebalanceStrategy(name), "gateway-0"
			opts, err := Group(host{"mine": strategy{nil, kgo.RangeBalancer()}, "other": nil}, &cfg)
			if want != "" {
				require.ErrorContains(t, err, want)
				return
			}
			require.NoError(t, err)
			client, err := kgo.NewClient(opts...)
			require.NoError(t, err)
			client.Close()
		})
	}
}
