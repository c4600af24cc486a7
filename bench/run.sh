#!/usr/bin/env bash
# Speed and memory beside the peers, one table after another. Nothing is asserted: read the ratios. ROTEL= and FLUENT_BIT= name binaries that run beside.
set -eu
cd "$(dirname "$0")/.."
mkdir -p bench/out
go build -o bin/bench ./bench
echo "## machine: $(nproc) cores, $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), load before the run $(cut -d' ' -f1 /proc/loadavg)"
# A binary just linked sits in the page cache in large folios, which map some 40 MiB more of it into every process:
# dropping its pages once gives all contenders the memory that they have in use.
for bin in bin/trainbridge bin/trainbridge-full "${ROTEL:-}" "${FLUENT_BIT:-}"; do
  test -z "$bin" || { sync "$bin" && dd if="$bin" iflag=nocache count=0 status=none; }
done
taskset -c 1 bin/bench "$@"
test $# -eq 0 || exit 0
echo "### parts, ns and allocations per line or span"
go test -run '^$' -bench . -benchmem ./spans ./bridge/... ./receivers/... ./processors/... ./connectors/... | grep -E '^(Benchmark|pkg:)'
echo "### line written → span in Jaeger"
go test -tags e2e -run '^$' -bench LineToJaeger -benchtime 50x ./test/e2e | grep -E '^Benchmark'
