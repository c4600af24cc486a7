#!/usr/bin/env bash
# Speed and memory beside the peer, one table after another. Nothing is asserted: read the ratios.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bench/out
go build -o bin/bench ./bench
echo "## machine: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load before the run $(cut -d' ' -f1 /proc/loadavg)"
# A binary just linked sits in the page cache in large folios, which map some 40 MiB more of it into every process:
# dropping its pages once gives both contenders the memory that they have in use.
sync bin/trainbridge && dd if=bin/trainbridge iflag=nocache count=0 status=none
taskset -c 1 bin/bench "$@"
echo "## parts, ns and allocations per line or span"
go test -run '^$' -bench . -benchmem ./spans ./bridge/... ./receivers/... ./processors/... ./connectors/... | grep -E '^(Benchmark|pkg:)'
echo "## line written → span in Jaeger"
go test -tags e2e -run '^$' -bench LineToJaeger -benchtime 50x ./test/e2e | grep -E '^Benchmark'
