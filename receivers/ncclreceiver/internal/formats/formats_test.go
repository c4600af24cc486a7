package formats_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/formats"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNamed(t *testing.T) {
	for _, name := range formats.Names() {
		f := formats.Named(name)
		require.NotNil(t, f, name)
		assert.Equal(t, name, f.Name)
		assert.NotNil(t, f.New("rank_0.log", nil), name)
	}
	assert.Nil(t, formats.Named("auto"))
}

func TestOf(t *testing.T) {
	for line, want := range map[string]struct {
		format string
		v      parse.Verdict
		reason string
	}{
		`{"header":{"id":"0x1"},"coll_perf":{}}`:                                {"nccl_inspector", parse.Record, ""},
		`{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 1, "ts": 1.5},`:  {"nccl_profiler", parse.Record, ""},
		`{"entries": [{"profiling_name": "nccl:all_reduce"}]}`:                  {"flight_recorder", parse.Record, ""},
		`{"timestamp": 1693958400.123, "rank": 0`:                               {"vccl_json", parse.Record, ""},
		`rank,operation,timestamp`:                                              {"vccl_csv", parse.Record, ""},
		`9601674407965897472`:                                                   {"vccl_packed", parse.Record, ""},
		`20260112140501,0,4,187,181,1`:                                          {"vccl_mean", parse.Record, ""},
		`20250710143000: Group:1, from rank 0 to rank 8`:                        {"vccl_text", parse.Record, ""},
		`20260108180000,1,0,8,0,4,118,10.10.1.11,10.10.1.12,181,12,0,176786640`: {"vccl_flow", parse.Record, ""},

		"":                                       {"", parse.Ignored, "bracket"},
		"[":                                      {"", parse.Ignored, "bracket"},
		"nccl_bytes_total 1":                     {"", parse.Ignored, "prometheus"},
		"# HELP x":                               {"", parse.Ignored, "prometheus"},
		"\x80\x04\x95":                           {"", parse.Rejected, "truncated"},
		"\x80\x04cos\nsystem\n":                  {"", parse.Rejected, "pickle"},
		"\x80\x02}X\x09\x00\x00\x00pg_config}s.": {"flight_recorder", parse.Record, ""},
		"\x00\x01\x00\x02":                       {"", parse.Rejected, "binary_without_layout"},
		`{"loss": 2}`:                            {"", parse.Rejected, "unknown_format"},
		"NCCL INFO Bootstrap:":                   {"", parse.Rejected, "unknown_format"},
	} {
		f, v, reason := formats.Of([]byte(line))
		name := ""
		if f != nil {
			name = f.Name
		}
		assert.Equal(t, want.format, name, line)
		assert.Equal(t, want.v, v, line)
		assert.Equal(t, want.reason, reason, line)
	}
}
