package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// contender is a program with its configuration, one row of each table.
type contender struct {
	name string
	// command makes the command line of a program that reads the *.log of dir and sends spans or log records to s. The program's own files go into dir.
	command func(d *duel, dir string, s *sink) (args, env []string, err error)
	ready   string // the output of a running contender; empty: it says nothing
	records bool   // one item per line: log records
	drops   bool   // lines that duel.regex does not fit are dropped
	reads   bool   // reads present data at once: the CPU time of the start counts
}

// Names used by the summary.
const (
	ours, alone, peer, typed, rotel, fluentBit = "trainbridge", "trainbridge, exporter alone", "file_log", "file_log, typed", "rotel", "fluent-bit"
)

// contenders are the contenders for every log. base, rotelBin and fluentBin may be empty: then the contender is left out.
func contenders(bin, peerBin, base, baseConfig, rotelBin, fluentBin string) []contender {
	list := []contender{
		collector(ours, bin, "none", "otelcol-config", "bench/config/shipped"),
		collector(alone, bin, "none", "otelcol-config", "bench/config/shipped", "bench/config/exporter_alone"),
		collector(peer, peerBin, "none", "bench/config/file_log"),
		collector(typed, peerBin, "none", "bench/config/file_log"),
	}
	for _, compression := range []string{"gzip", "zstd"} {
		list = append(list, collector(ours+", "+compression, bin, compression, "otelcol-config", "bench/config/shipped"),
			collector(peer+", "+compression, peerBin, compression, "bench/config/file_log"))
	}
	if base != "" {
		list = append(list, collector("base", base, "none", strings.TrimSuffix(baseConfig, ".yaml"), "bench/config/shipped"))
	}
	if rotelBin != "" {
		list = append(list, contender{name: rotel, command: rotelCommand(rotelBin), records: true, drops: true})
	}
	if fluentBin != "" {
		list = append(list, contender{name: fluentBit, command: fluentCommand(fluentBin), records: true})
	}
	return list
}

// collector is an OpenTelemetry Collector with configuration files of this repository; later files override earlier files. Receivers of other logs than the
// duel's find nothing.
func collector(name, bin, compression string, configs ...string) contender {
	args := []string{bin}
	for _, c := range configs {
		path, err := filepath.Abs(c + ".yaml")
		if err != nil {
			path = c + ".yaml"
		}
		args = append(args, "--config", path)
	}
	command := func(d *duel, dir string, s *sink) ([]string, []string, error) {
		env := map[string]string{
			"TRAINBRIDGE_OTLP_ENDPOINT": s.grpc, "TRAINBRIDGE_STATE_DIR": filepath.Join(dir, "state"), "OTEL_TRACES_SAMPLER": "always_off",
			"BENCH_DIR": dir, "BENCH_SINK": s.grpc, "BENCH_COMPRESSION": compression,
			"BENCH_OPERATORS": d.operators(name == typed), "BENCH_STATEMENTS": d.statements(), "BENCH_PROCESSORS": "[]",
		}
		if name == typed && d.regex != "" {
			env["BENCH_PROCESSORS"] = "[transform]"
		}
		for _, other := range duels {
			env[other.logs] = filepath.Join(dir, "none", "*")
		}
		env[d.logs] = filepath.Join(dir, "*.log")
		list := make([]string, 0, len(env))
		for _, k := range slices.Sorted(maps.Keys(env)) {
			list = append(list, k+"="+env[k])
		}
		return args, list, nil
	}
	return contender{name: name, command: command, ready: "Everything is ready", records: strings.HasPrefix(name, peer)}
}

// rotelCommand reads with rotel's file receiver, as file_log does: by the duel's expression, whose groups become text attributes, or else as JSON.
func rotelCommand(bin string) func(*duel, string, *sink) ([]string, []string, error) {
	return func(d *duel, dir string, s *sink) ([]string, []string, error) {
		args := []string{
			bin, "start", "--receiver", "file", "--file-receiver-include", filepath.Join(dir, "*.log"), "--file-receiver-start-at", "beginning",
			"--file-receiver-offsets-path", filepath.Join(dir, "offsets.json"), "--exporter", "otlp", "--otlp-exporter-endpoint", "http://" + s.grpc,
			"--otlp-exporter-protocol", "grpc", "--otlp-exporter-compression", "none", "--file-receiver-parser", "json",
		}
		if d.regex != "" {
			args = append(args[:len(args)-1], "regex", "--file-receiver-regex-pattern", d.regex)
		}
		return args, nil, nil
	}
}

// fluentCommand reads with Fluent Bit's tail input and sends by OTLP over HTTP.
func fluentCommand(bin string) func(*duel, string, *sink) ([]string, []string, error) {
	return func(d *duel, dir string, s *sink) ([]string, []string, error) {
		parser := "[PARSER]\n  Name line\n  Format json\n"
		if d.regex != "" {
			// Fluent Bit's expressions are Ruby's: (?<name>…) for a group.
			parser = "[PARSER]\n  Name line\n  Format regex\n  Regex " + strings.ReplaceAll(d.regex, "(?P<", "(?<") + "\n"
		}
		host, port, _ := strings.Cut(s.http, ":")
		conf := fmt.Sprintf(`[SERVICE]
  Flush 0.2
  Parsers_File %[1]s/parsers.conf
[INPUT]
  Name tail
  Path %[1]s/*.log
  Read_from_Head true
  Refresh_Interval 1
  Buffer_Chunk_Size 512k
  Buffer_Max_Size 1M
  Mem_Buf_Limit 64M
  Parser line
[OUTPUT]
  Name opentelemetry
  Match *
  Host %[2]s
  Port %[3]s
  Retry_Limit no_limits
`, dir, host, port)
		path := filepath.Join(dir, "fluent-bit.conf")
		if err := os.WriteFile(filepath.Join(dir, "parsers.conf"), []byte(parser), 0o600); err != nil {
			return nil, nil, err
		}
		return []string{bin, "-q", "-c", path}, nil, os.WriteFile(path, []byte(conf), 0o600)
	}
}
