package bridge

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"google.golang.org/grpc/credentials/insecure"
)

// Option sets something of New. An empty value is as none.
type Option func(*settings)

type settings struct {
	endpoint, serviceName, runID string
	global                       bool
}

// WithEndpoint sets where spans and metrics go: http://host:port (plaintext), https://host:port (TLS), or host:port, which is plaintext for a loopback address and TLS
// otherwise. Default: OTEL_EXPORTER_OTLP_ENDPOINT and its like, else http://127.0.0.1:4317.
func WithEndpoint(endpoint string) Option { return func(s *settings) { s.endpoint = endpoint } }

// WithServiceName sets service.name. Default: OTEL_SERVICE_NAME, else unknown_service:<program>.
func WithServiceName(name string) Option { return func(s *settings) { s.serviceName = name } }

// WithRunID sets ml.run.id, which has to be that of the receivers for ids that are no UUIDs, and for training steps. Default: ml.run.id in OTEL_RESOURCE_ATTRIBUTES, else
// slurm-<SLURM_JOB_ID>.
func WithRunID(id string) Option { return func(s *settings) { s.runID = id } }

// WithGlobal makes the bridge's providers and propagator those of package otel.
func WithGlobal() Option { return func(s *settings) { s.global = true } }

// Errors of New, behind the name of the option or variable.
var (
	ErrEndpoint = errors.New("not an endpoint such as http://127.0.0.1:4317, https://host:4317 or host:4317")
	ErrProtocol = errors.New("not supported, only grpc is")
	ErrExporter = errors.New("not supported, only otlp and none are")
	ErrNumber   = errors.New("not a whole number above 0")
)

func failed(field string, err error) error { return fmt.Errorf("bridge: %s: %w", field, err) }

var plaintext = insecure.NewCredentials()

// target is where one signal goes, and who said so.
type target struct {
	field, url string
	plaintext  bool
	none       bool // nowhere: OTEL_TRACES_EXPORTER=none
}

const defaultEndpoint = "http://127.0.0.1:4317"

// target finds the target of a signal, TRACES or METRICS.
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
	field, text := "WithEndpoint", s.endpoint
	if text == "" {
		field, text = envSignal(signal, "ENDPOINT")
	}
	if text == "" {
		field, text = "WithEndpoint", defaultEndpoint
	}
	_, plain := envSignal(signal, "INSECURE")
	out, ok := parseEndpoint(text, strings.EqualFold(plain, "true"))
	out.field = field
	if !ok {
		return out, failed(field, fmt.Errorf("%q: %w", text, ErrEndpoint))
	}
	if !out.plaintext {
		for _, name := range [...]string{"CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"} {
			if field, file := envSignal(signal, name); file != "" {
				if _, err := os.ReadFile(file); err != nil { // the SDK would go on without it
					return out, failed(field, err)
				}
			}
		}
	}
	return out, nil
}

// checkEnv looks at numbers that the SDK takes as they are: it panics on a queue of negative size.
func checkEnv() error {
	for _, field := range [...]string{
		"OTEL_BSP_SCHEDULE_DELAY", "OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
		"OTEL_METRIC_EXPORT_INTERVAL", "OTEL_METRIC_EXPORT_TIMEOUT",
	} {
		if text := env(field); text != "" {
			if n, err := strconv.Atoi(text); err != nil || n <= 0 {
				return failed(field, fmt.Errorf("%q: %w", text, ErrNumber))
			}
		}
	}
	return nil
}

// parseEndpoint reads the forms of WithEndpoint. A port is needed where gRPC would take that of https for plaintext.
func parseEndpoint(text string, plain bool) (target, bool) {
	if !strings.Contains(text, "://") {
		host, _, err := net.SplitHostPort(text)
		if err != nil {
			return target{}, false
		}
		scheme := "https://"
		if ip := net.ParseIP(host); plain || host == "localhost" || ip != nil && ip.IsLoopback() {
			scheme = "http://"
		}
		text = scheme + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return target{}, false
	}
	switch u.Scheme {
	case "http":
		if u.Port() == "" {
			return target{}, false
		}
	case "https":
	default:
		return target{}, false
	}
	return target{url: u.Scheme + "://" + u.Host, plaintext: u.Scheme == "http"}, true
}

// envSignal reads OTEL_EXPORTER_OTLP_<signal>_<name>, else OTEL_EXPORTER_OTLP_<name>.
func envSignal(signal, name string) (field, value string) {
	for _, field = range [...]string{"OTEL_EXPORTER_OTLP_" + signal + "_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if value = env(field); value != "" {
			return field, value
		}
	}
	return "", ""
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }
