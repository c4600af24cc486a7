package offline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// owners maps the files of paths to the receivers that understand them.
func owners(t *testing.T, paths ...string) map[string]string {
	t.Helper()
	in, err := Open(paths, nil)
	require.NoError(t, err)
	defer in.Close()
	r := newReading(in)
	require.NoError(t, r.findReceivers(in, Options{Log: zap.NewNop()}))
	of := make(map[string]string, len(r.Files))
	for _, f := range r.Files {
		of[f.Path] = f.Receiver
	}
	return of
}

// Files of foreign writers have no receiver, however similar to logs of training; nor do golden files of tests and drawings of traces.
func TestForeignFilesAreNobodys(t *testing.T) {
	for file, receiver := range owners(t, "testdata/foreign", "../../../../receivers/*/testdata/*.{yaml,txt}") {
		want := ""
		switch filepath.Base(file) {
		case "dmesg": // its Xid may be the cause of a job's death
			want = "run_events"
		case "jsonl.waterfall.txt", "jsonl.traces.yaml": // they quote a line about saving, with its time
			want = "run_events"
		}
		assert.Equal(t, want, receiver, filepath.Base(file))
	}
}

// Fixtures are understood by their own receivers, but for Megatron's lines, which any trainer may print.
func TestFixturesAreTheirReceivers(t *testing.T) {
	for receiver, dirs := range map[string][]string{
		"tq_trace":  {"tqtracereceiver/testdata/*.log"},
		"flagscale": {"flagscalereceiver/testdata/{douzi,merged,json_only,restart}/**"},
		"nccl": {
			"ncclreceiver/testdata/{flight_recorder,inspector-v4.0,inspector-v4.4,profiler}/*", "ncclreceiver/testdata/vccl_{csv,flow,ids,json,mean,packed,text}/*",
		},
		"train_log": {"trainlogreceiver/testdata/*.{log,jsonl}", "flagscalereceiver/testdata/megatron/**"},
	} {
		for i, dir := range dirs {
			dirs[i] = "../../../../receivers/" + dir
		}
		for file, got := range owners(t, dirs...) {
			assert.Equal(t, receiver, got, strings.TrimPrefix(file, "../../../../"))
		}
	}
}

// Writers open their logs with a header: the owner of a file is known before its first record.
func TestHeadersTell(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"nccl flow": "Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp\n",
		"nccl mean": "Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status\n", "nccl packed": "64 bits data: status(63) | bandwidth(62 - 54) | timestamp(53 - 0) \n",
		"zmq_rpc zmq":        "ZeroMQ Performance Log - Transport: IPC\n====\nID    Method   Serialize(ms)   Send(ms)   Recv(ms)   Deserialize(ms)   Total(ms)\n",
		"flagscale perf.log": "Performance Monitor Session Started: 2026-06-12 10:30:00\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for file, receiver := range owners(t, dir) {
		want, _, _ := strings.Cut(filepath.Base(file), " ")
		assert.Equal(t, want, receiver, file)
	}
}
