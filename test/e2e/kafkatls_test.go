//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// selfSigned returns PEM files: a CA, and a key for a server at addr with its certificate.
func selfSigned(tb testing.TB, addr string) (ca, server string) {
	tb.Helper()
	host, _, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	var files [2]string
	var issuer *x509.Certificate
	var signer *ecdsa.PrivateKey
	for i := range files {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(tb, err)
		c := &x509.Certificate{
			SerialNumber: big.NewInt(int64(i + 1)), Subject: pkix.Name{CommonName: fmt.Sprint("test ", i)}, NotBefore: time.Now().Add(-time.Hour),
			NotAfter: time.Now().Add(24 * time.Hour), IsCA: i == 0, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
			IPAddresses: []net.IP{net.ParseIP(host)},
		}
		if i == 0 {
			issuer, signer = c, key
		}
		der, err := x509.CreateCertificate(rand.Reader, c, issuer, &key.PublicKey, signer)
		require.NoError(tb, err)
		text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if i > 0 {
			private, err := x509.MarshalPKCS8PrivateKey(key)
			require.NoError(tb, err)
			text = append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), text...)
		}
		files[i] = write(tb, "cert.pem", string(text))
	}
	return files[0], files[1]
}

// kafkaTool is the class of a command of Kafka's distribution.
var kafkaTool = map[string]string{"kafka-configs.sh": "kafka.admin.ConfigCommand", "kafka-acls.sh": "org.apache.kafka.tools.AclCommand"}

// documented returns the commands of docs/reference/scale.md that begin with a Kafka tool, as lines for a shell and the broker at addr.
func documented(tb testing.TB, tool, addr string) string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(repoRoot, "docs/reference/scale.md"))
	require.NoError(tb, err)
	lines := slices.DeleteFunc(shellLines(string(text)), func(line string) bool { return !strings.HasPrefix(line, tool+" ") })
	require.NotEmpty(tb, lines)
	libs, err := filepath.Abs(filepath.Join(repoRoot, "bin/tools/kafka"))
	require.NoError(tb, err)
	java := fmt.Sprintf("java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp '%s/*' %s", libs, kafkaTool[tool])
	return strings.NewReplacer(tool, java, "kafka:9092", addr).Replace(strings.Join(lines, "\n"))
}

// securedBroker is the setting of a broker whose second listener asks for TLS and a login, and which refuses all that no rule allows. The plain listener is the
// administrator's.
func securedBroker(server string) string {
	return strings.Join([]string{
		"KAFKA_CONFIG=authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:ANONYMOUS",
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:SASL_SSL",
		"sasl.enabled.mechanisms=SCRAM-SHA-512",
		"listener.name.proxied.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"listener.name.proxied.ssl.keystore.type=PEM",
		"listener.name.proxied.ssl.keystore.location=" + server,
	}, "\n")
}

// refusedTo holds that a user may not read a topic.
func refusedTo(t *testing.T, addr, ca, user, password, topic string) {
	t.Helper()
	roots, err := os.ReadFile(ca)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(roots))
	client, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.DialTLSConfig(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()), kgo.ConsumeTopics(topic))
	require.NoError(t, err)
	defer client.Close()
	require.ErrorIs(t, client.PollFetches(t.Context()).Err(), kerr.TopicAuthorizationFailed, "%s reads %s", user, topic)
}

// With TLS, a login, and the rights in docs/reference/scale.md and no more, a job's steps and collectives reach the backend. The collectors start before they
// have the rights.
func TestKafkaSecured(t *testing.T) {
	t.Parallel()
	tr := generateJob(t, "--ranks", "16", "--steps", "10", "--seed", "5", "--nccl", "nccl_inspector")
	secured := freeAddr(t)
	ca, server := selfSigned(t, secured)
	b := newKafka(t, freeAddr(t), 4, secured, secured)
	b.env = append(b.env, securedBroker(server))
	b.up(t)
	b.topics(t, "rl_otlp_spans", "rl_otlp_nccl", "vision_otlp_spans")
	run(t, nil, "bash", "-euc", documented(t, "kafka-configs.sh", b.addr))

	sink := startSpanSink(t)
	login := func(user, password string) []string {
		return []string{
			"TRAINBRIDGE_KAFKA=" + secured, "TRAINBRIDGE_KAFKA_PREFIX=rl_", "TRAINBRIDGE_KAFKA_CA=" + ca, "TRAINBRIDGE_KAFKA_USER=" + user,
			"TRAINBRIDGE_KAFKA_PASSWORD=" + password,
		}
	}
	agent := func(env ...string) *collector {
		a := deployed(t, "kafka/agent.yaml", append(env, "TRAINBRIDGE_RUN_ID="+tr.RunID, "TRAINBRIDGE_LOGS="+tr.dir+"/[tz]*/*",
			"TRAINBRIDGE_NCCL_LOGS="+tr.dir+"/nccl/*")...)
		a.config(t, "kafka/agent-tls.yaml")
		a.merge(t, otlpPorts(t))
		a.up(t)
		return a
	}
	gateway := deployed(t, "kafka/gateway.yaml", append(login("rl-gateway", "gateways"), "TRAINBRIDGE_OTLP_ENDPOINT="+sink.addr, "TRAINBRIDGE_COLLECTOR=gateway-0")...)
	gateway.config(t, "kafka/gateway-tls.yaml")
	// The first steps wait for collectives, which may come a retry's pause later.
	gateway.merge(t, "{processors: {step_join: {wait: 20s}}, exporters: {otlp_acked: {compression: none}}}")
	gateway.up(t)
	team := agent(login("rl-agent", "agents")...)
	stranger := agent(login("rl-agent", "guessed")...)
	unsure := agent(append(login("rl-agent", "agents"), "TRAINBRIDGE_KAFKA_CA=")...)
	stranger.says(t, "SASL_AUTHENTICATION_FAILED")
	unsure.says(t, "certificate signed by unknown authority")
	team.says(t, "TOPIC_AUTHORIZATION_FAILED")
	gateway.says(t, "AUTHORIZATION_FAILED")
	stranger.kill()
	unsure.kill()

	run(t, nil, "bash", "-euc", documented(t, "kafka-acls.sh", b.addr))
	f := &fleet{T: t, agents: []*collector{team}, gateways: []*collector{gateway}}
	whole, partial := f.breakdowns(tr, sink)
	assert.Equal(t, len(tr.Steps), whole)
	assert.Empty(t, partial)
	for _, topic := range []string{"rl_otlp_spans", "rl_otlp_nccl", "vision_otlp_spans"} {
		refusedTo(t, secured, ca, "rl-agent", "agents", topic)
	}
	refusedTo(t, secured, ca, "rl-gateway", "gateways", "vision_otlp_spans")
}
