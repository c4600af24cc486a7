package bridge

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/credentials/insecure"
)

// Option sets something of New. An empty value is as none.
type Option func(*settings)

type settings struct {
	endpoint, serviceName, runID string
	global                       bool
}

// WithEndpoint sets the destination of spans and metrics: http://host:port (plaintext), https://host:port (TLS), or host:port, plaintext for a loopback address
// and TLS otherwise. Default: OTEL_EXPORTER_OTLP_ENDPOINT and its variants, else http://127.0.0.1:4317.
func WithEndpoint(endpoint string) Option { return func(s *settings) { s.endpoint = endpoint } }

// WithServiceName sets service.name. Default: OTEL_SERVICE_NAME, else unknown_service:<program>.
func WithServiceName(name string) Option { return func(s *settings) { s.serviceName = name } }

// WithRunID sets ml.run.id, which must equal the run_id of the receivers for training steps and for ids other than UUIDs. Default: ml.run.id in
// OTEL_RESOURCE_ATTRIBUTES, else the environment's run (spans.JobRunID), as in the receivers.
func WithRunID(id string) Option { return func(s *settings) { s.runID = id } }

// WithGlobal makes the bridge's providers and propagator the defaults of package otel.
func WithGlobal() Option { return func(s *settings) { s.global = true } }

// Errors of New, after the name of the option or variable.
var (
	ErrEndpoint    = errors.New("not an endpoint such as http://127.0.0.1:4317, https://host:4317 or host:4317")
	ErrProtocol    = errors.New("not supported, only grpc is")
	ErrExporter    = errors.New("not supported, only otlp and none are")
	ErrCompression = errors.New("not supported, only gzip and none are")
	ErrSampler     = errors.New("not a sampler that OpenTelemetry's SDK for Go has")
	ErrRatio       = errors.New("not a ratio, 0 to 1")
	ErrNumber      = errors.New("not a whole number above 0, or too large")
	ErrHeaders     = errors.New("not of the form key=value,key=value") // without the text, a possible secret
	ErrCertificate = errors.New("not a certificate in PEM")
	ErrText        = errors.New("not UTF-8, or with control or invisible characters")
)

func failed(field string, err error) error { return fmt.Errorf("bridge: %s: %w", field, err) }

var plaintext = insecure.NewCredentials()

// target is the destination of one signal, and the setting after it.
type target struct {
	field, url string
	plaintext  bool
	none       bool // nowhere: OTEL_<signal>_EXPORTER=none
}

const defaultEndpoint = "http://127.0.0.1:4317"

// target returns the destination of a signal, TRACES or METRICS: nowhere if OTEL_<signal>_EXPORTER is none, else the address of WithEndpoint, else of the
// environment, else the default. The variables for protocol, compression and headers count with any of these addresses. The SDK would ignore wrong values in
// the environment; here they are errors that name their variable.
func (s *settings) target(signal string) (target, error) {
	switch field := "OTEL_" + signal + "_EXPORTER"; env(field) {
	case "", "otlp":
	case "none":
		return target{none: true}, nil
	default:
		return target{}, failed(field, fmt.Errorf("%q: %w", env(field), ErrExporter))
	}
	if field, protocol := envSignal(signal, "PROTOCOL"); protocol != "" && protocol != "grpc" {
		return target{}, failed(field, fmt.Errorf("%q: %w", protocol, ErrProtocol))
	}
	if field, text := envSignal(signal, "COMPRESSION"); text != "" && text != "gzip" && text != "none" {
		return target{}, failed(field, fmt.Errorf("%q: %w", text, ErrCompression))
	}
	for _, field := range [...]string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_" + signal + "_HEADERS"} { // the SDK takes both
		if !validHeaders(env(field)) {
			return target{}, failed(field, ErrHeaders)
		}
	}
	field, text := "WithEndpoint", s.endpoint
	if text == "" {
		field, text = envSignal(signal, "ENDPOINT")
	}
	if text == "" {
		field, text = "WithEndpoint", defaultEndpoint
	}
	_, noTLS := envSignal(signal, "INSECURE")
	out, ok := parseEndpoint(text, strings.EqualFold(noTLS, "true"))
	out.field = field
	switch {
	case !ok && strings.ContainsAny(text, "@?#"): // may contain a password or token
		return out, failed(field, ErrEndpoint)
	case !ok:
		return out, failed(field, fmt.Errorf("%q: %w", text, ErrEndpoint))
	case !out.plaintext:
		return out, checkCertificates(signal)
	}
	return out, nil
}

// checkCertificates reads the PEM files that the environment names for a signal's TLS: the authorities that vouch for the collector, and the service's own
// certificate with its key. The SDK would go on without a damaged file.
func checkCertificates(signal string) error {
	const authorities, certificate, key = 0, 1, 2
	var pem [3][]byte
	var fields [3]string
	for i, name := range [...]string{authorities: "CERTIFICATE", certificate: "CLIENT_CERTIFICATE", key: "CLIENT_KEY"} {
		field, file := envSignal(signal, name)
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return failed(field, err)
		}
		fields[i], pem[i] = field, text
	}
	if fields[authorities] != "" && !x509.NewCertPool().AppendCertsFromPEM(pem[authorities]) {
		return failed(fields[authorities], ErrCertificate)
	}
	if field := cmp.Or(fields[certificate], fields[key]); field != "" { // one without its counterpart is an error of X509KeyPair
		if _, err := tls.X509KeyPair(pem[certificate], pem[key]); err != nil {
			return failed(field, err)
		}
	}
	return nil
}

// validHeaders reports whether the headers in a variable, "key=value,key=value" with values percent-encoded, can be sent as gRPC metadata.
func validHeaders(text string) bool {
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(value)
		notASCII := strings.ContainsFunc(strings.TrimSpace(value), func(r rune) bool { return r < ' ' || r > '~' })
		if !ok || err != nil || notASCII || !headerKey.MatchString(strings.TrimSpace(key)) {
			return false
		}
	}
	return true
}

var headerKey = regexp.MustCompile(`^[0-9A-Za-z._-]+$`)

// Bounds of numbers: milliseconds (24 days), and spans in memory.
const (
	maxMillis = math.MaxInt32
	maxSpans  = 1 << 20
)

// checkEnv checks numbers that the SDK does not: the SDK panics on a queue of negative or huge size.
func checkEnv() error {
	for field, limit := range map[string]int{
		"OTEL_BSP_SCHEDULE_DELAY": maxMillis, "OTEL_BSP_EXPORT_TIMEOUT": maxMillis, "OTEL_BSP_MAX_QUEUE_SIZE": maxSpans, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": maxSpans,
		"OTEL_METRIC_EXPORT_INTERVAL": maxMillis, "OTEL_METRIC_EXPORT_TIMEOUT": maxMillis,
		"OTEL_EXPORTER_OTLP_TIMEOUT": maxMillis, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": maxMillis, "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": maxMillis,
	} {
		if text := os.Getenv(field); text != "" { // with blanks, which the SDK does not accept in a number
			if n, err := strconv.Atoi(text); err != nil || n <= 0 || n > limit {
				return failed(field, fmt.Errorf("%q: %w", text, ErrNumber))
			}
		}
	}
	return nil
}

// sampler reads OTEL_TRACES_SAMPLER as the SDK does, except the ratio: the SDK takes the last 8 bytes of a trace id for random, but in a UUID these always
// begin with the same two bits. Where the SDK's own reading is right, there is no option.
func sampler() ([]sdktrace.TracerProviderOption, error) {
	const field = "OTEL_TRACES_SAMPLER"
	name := strings.ToLower(env(field))
	switch name {
	case "", "always_on", "always_off", "parentbased_always_on", "parentbased_always_off":
		return nil, nil
	case "traceidratio", "parentbased_traceidratio":
	default:
		return nil, failed(field, fmt.Errorf("%q: %w", env(field), ErrSampler))
	}
	ratio := 1.0
	if text := env(field + "_ARG"); text != "" {
		var err error
		ratio, err = strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, failed(field+"_ARG", fmt.Errorf("%q: %w", text, ErrRatio))
		}
	}
	var s sdktrace.Sampler = hashed{sdktrace.TraceIDRatioBased(ratio)}
	if name == "parentbased_traceidratio" {
		s = sdktrace.ParentBased(s)
	}
	return []sdktrace.TracerProviderOption{sdktrace.WithSampler(s)}, nil
}

// hashed is a sampler that decides by a hash of the trace id: every process decides alike.
type hashed struct{ sdktrace.Sampler }

// ShouldSample replaces the 8 bytes that TraceIDRatioBased compares with its bound.
func (h hashed) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	binary.BigEndian.PutUint64(p.TraceID[8:], xxh3.Hash(p.TraceID[:]))
	return h.Sampler.ShouldSample(p)
}

// parseEndpoint reads the forms of WithEndpoint; false for any other text. noTLS (OTEL_EXPORTER_OTLP_INSECURE) makes host:port an address for plaintext. An
// address for plaintext needs a port: gRPC would take 443, the port of https.
func parseEndpoint(text string, noTLS bool) (target, bool) {
	if !strings.Contains(text, "://") {
		host, port, err := net.SplitHostPort(text)
		if err != nil || port == "" {
			return target{}, false
		}
		scheme := "https://"
		if ip := net.ParseIP(host); noTLS || strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback() {
			scheme = "http://"
		}
		text = scheme + text
	}
	// The exporter takes scheme, host and port of a URL: anything more would be dropped without a word.
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return target{}, false
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return target{}, false
	}
	withoutPort := u.Scheme == "https" && u.Port() == "" && !strings.HasSuffix(u.Host, ":")
	if port, err := strconv.ParseUint(u.Port(), 10, 16); !withoutPort && (err != nil || port == 0) {
		return target{}, false
	}
	out := url.URL{Scheme: u.Scheme, Host: u.Host} // String escapes the zone of an IPv6 address again
	return target{url: out.String(), plaintext: u.Scheme == "http"}, true
}

// envSignal reads OTEL_EXPORTER_OTLP_<signal>_<name>, else OTEL_EXPORTER_OTLP_<name>.
func envSignal(signal, name string) (field, value string) {
	for _, field = range [...]string{"OTEL_EXPORTER_OTLP_" + signal + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		value = env(field)
		if value != "" {
			return field, value
		}
	}
	return "", ""
}

// env reads a variable without the blanks around its value, as the SDK does.
func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
