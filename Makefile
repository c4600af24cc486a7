# `make run` and `make test` do all their set-up themselves: apt packages, tools, servers.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# One set of flags for our builds, ocb's and the tests': all share Go's build cache.
export GOFLAGS := -trimpath -buildvcs=false
export CGO_ENABLED := 1
# go-nvml calls what nvml.h calls deprecated: a hundred warnings that help no one.
export CGO_CFLAGS := -O2 -g -Wno-deprecated-declarations

BIN := $(CURDIR)/bin
FUZZTIME ?= 30s
KAFKA_TESTS := ^(TestKafka|TestFleet)
GO_FILES := $(shell find . \( -name '*.go' -o -path '*/report/html/*' \) -type f -not -path './bin/*') go.mod go.sum otelcol-config.yaml otelcol-verdicts.yaml
COMPONENTS := receivers/tqtracereceiver receivers/flagscalereceiver receivers/trainlogreceiver receivers/zmqrpcreceiver receivers/ncclreceiver receivers/nvmlreceiver receivers/runeventsreceiver processors/trainperfprocessor processors/stepjoinprocessor connectors/trainmetricsconnector connectors/verdictlogsconnector exporters/otlpackedexporter exporters/runlakeexporter extensions/statestorage
TOOL := go tool -modfile=$(CURDIR)/tools/go.mod

.PHONY: build build-full gen ocb dist nfpm share jaeger tempo kafka transferqueue perfetto grafana kubernetes lake tables apt test release-test unit e2e verl endings endings-gpu gpu-test torture fleet soak memory lint vuln sbom generate fuzz fr-trace bench run clean new-format

# The agent, and the build that has all components of builder-full.yaml.
build: $(BIN)/trainbridge
build-full: $(BIN)/trainbridge-full
$(BIN)/trainbridge $(BIN)/trainbridge-full: $(GO_FILES)
	go build $(if $(filter %-full,$@),-tags full) -ldflags="-s -w -X main.commit=$$(git rev-parse --short HEAD 2>/dev/null)" -o $@ ./cmd/trainbridge

# Logs of which the truth is known, for the tests, the benchmark and make run.
gen: $(BIN)/gen
$(BIN)/gen: $(GO_FILES)
	go build -ldflags="-s -w" -o $@ ./test/gen

# ocb tidies a go.mod of its own; with our go.sum beside it, no checksum has to be looked up.
ocb: $(BIN)/trainbridge-ocb
$(BIN)/trainbridge-ocb: builder-config.yaml $(GO_FILES)
	mkdir -p $(BIN)/ocb && cp go.sum $(BIN)/ocb/go.sum
	GOFLAGS="-mod=mod -buildvcs=false" go tool -modfile=tools/go.mod builder --config=builder-config.yaml --skip-strict-versioning=false
	mv $(BIN)/ocb/trainbridge-ocb $@

# The files of a release, in bin/dist: docs/reference/releasing.md.
dist: nfpm $(BIN)/tools/zig
	tools/apt.sh dist
	tools/dist/dist.sh $(BIN)/dist

nfpm: $(BIN)/tools/nfpm
$(BIN)/tools/nfpm: tools/nfpm/go.mod tools/nfpm/go.sum
	go -C tools/nfpm build -ldflags="-s -w" -o $@ github.com/goreleaser/nfpm/v2/cmd/nfpm

# Man pages and completions.
share: $(BIN)/share
$(BIN)/share: $(BIN)/trainbridge tools/dist/share.sh
	tools/dist/share.sh $< $@

jaeger: $(BIN)/tools/jaeger
$(BIN)/tools/jaeger: tools/jaeger/go.mod tools/jaeger/go.sum
	go -C tools/jaeger build -ldflags="-s -w" -o $@ github.com/jaegertracing/jaeger/cmd/jaeger

tempo: $(BIN)/tools/tempo
$(BIN)/tools/tempo: tools/tempo/go.mod tools/tempo/go.sum
	go -C tools/tempo build -ldflags="-s -w" -o $@ github.com/grafana/tempo/cmd/tempo

# A broker for the tests: what its main class needs, of Maven Central.
kafka: $(BIN)/tools/kafka
$(BIN)/tools/kafka: tools/kafka/pom.xml
	tools/apt.sh kafka
	rm -rf $@ $@.new
	mvn -q -B -f $< org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DincludeScope=runtime -DoutputDirectory=$@.new
	mv $@.new $@

# Packages of PyPI, each with what it needs in a virtual environment.
transferqueue: $(BIN)/tools/transferqueue
perfetto: $(BIN)/tools/perfetto
kubernetes: $(BIN)/tools/kubernetes
lake: $(BIN)/tools/lake
tables: $(BIN)/tools/tables
$(BIN)/tools/transferqueue $(BIN)/tools/perfetto $(BIN)/tools/kubernetes $(BIN)/tools/lake $(BIN)/tools/tables $(BIN)/tools/endings $(BIN)/tools/ray-endings $(BIN)/tools/zig: $(BIN)/tools/%: tools/%/requirements.txt
	tools/venv.sh $* $@

# The dashboards of deploy/grafana by the types of npm's @grafana/schema.
grafana:
	tools/apt.sh grafana
	tools/grafana/check.sh

# Prometheus, promtool and curl are Debian packages.
apt:
	tools/apt.sh

test: lint unit e2e

# The race detector makes these ten times as slow and finds nothing: they compute, in one goroutine. It watches what they do in the packages that call them.
COMPUTING := . $(addprefix ./,$(addprefix cmd/trainbridge/internal/,compare gen lake postmortem report report/csv report/document show) \
	bridge/clock bridge/tail/internal/rows $(addprefix internal/,account bounds collectives $(addprefix collectives/,baseline clocks late partial) flightrecorder \
	pickle records regimes tfevents traces/digest wandb) $(addprefix processors/,stepjoinprocessor/internal/breakdown stepjoinprocessor/internal/why \
	trainperfprocessor/internal/devices) $(addprefix receivers/,internal/megatron internal/step $(addprefix ncclreceiver/internal/,inspector offsets profiler ras vccl) \
	tqtracereceiver/internal/assemble zmqrpcreceiver/internal/rpclog) $(addprefix test/gen/,nccl tq train zmq) test/sim)

# The skeleton of a format of train_log: see docs/reference/contributing.md.
new-format:
	go -C tools run ./newformat $(CURDIR) "$(NAME)"

# The race detector everywhere else but in the binary itself, whose code is a list of imports. With it models run fewer seeds and hostile logs are shorter (-short);
# whatever is smaller then runs whole without it. nvml also as it is without cgo. Each of the hundred binaries would sleep for a second at its end; some packages wait
# more than they work, so there is one more at a time than there are cores. Vet is lint's: with and without the race detector it would look at all packages, and all
# that these import, twice more.
unit:
	GORACE=atexit_sleep_ms=0 go test -vet=off -race -short -p $$(($$(nproc) + 1)) -timeout 25m $$(go list ./... | grep -vE '/cmd/trainbridge$$' | grep -vxF "$$(go list $(COMPUTING))")
	go test -vet=off -p $$(($$(nproc) + 1)) ./cmd/trainbridge $(COMPUTING) $$(grep -rl --include=*_test.go --exclude-dir=bin --exclude-dir=tools 'testing[.]Short()' . | xargs -n 1 dirname | sort -u)
	go test -tags full -run 'Component|Validate' ./cmd/trainbridge
	go -C tools test -count=1 ./semconv ./wheel ./newformat # its cache does not know the golden files of this module
	CGO_ENABLED=0 go test -vet=off ./receivers/nvmlreceiver

# Most tests wait for half of their time: for scrapes, for the shipped ports, for memory that is given back. The tests with a broker run after the others. Each has
# a broker of its own, because it kills it; beside the others that is too much for two cores.
e2e: build build-full gen ocb jaeger tempo perfetto kubernetes lake kafka apt sbom nfpm share
	go test -vet=off -tags e2e -count=1 -parallel 12 -timeout 30m -v -skip '$(KAFKA_TESTS)' ./test/e2e/...
	go test -vet=off -tags e2e -count=1 -parallel 6 -timeout 30m -v -run '$(KAFKA_TESTS)|^TestPerfetto' ./test/e2e ./cmd/trainbridge/internal/report/perfetto

# The files of `make dist` installed and run: a deb and an rpm in a chroot, wheels, the image by runc, arm64 by qemu; a day of the
# service, jobs of a real Slurm; and all of them made again in a clone. It needs root and what is committed. The dashboards are here for their check needs node.
release-test: build gen dist jaeger apt grafana
	tools/apt.sh release
	GOARCH=arm64 CGO_ENABLED=0 go test -vet=off -exec qemu-aarch64-static ./internal/human ./internal/stat # numbers: arm64 multiplies and adds in one operation
	go test -vet=off -tags e2e,release -count=1 -timeout 60m -v -run '^TestRelease' ./test/e2e

# The trace ids of integrations/verl with the TransferQueue of PyPI. It needs torch, whose wheel for x86_64 has CUDA's libraries: 3 GB to load, 5 GB on disk. That is
# too much for every run of the tests.
verl: build jaeger transferqueue
	go test -tags e2e,verl -count=1 -timeout 15m -v -run '^TestVerlTraceIDs$$' ./test/e2e

# Real ends of small jobs, of which cmd/trainbridge/internal/postmortem/testdata/endings is the record: torchrun, Slurm, Ray and other launchers. It needs root and takes half an hour;
# the fixtures change in every byte, for times and process ids are theirs.
endings: $(BIN)/tools/endings $(BIN)/tools/ray-endings
	tools/apt.sh endings
	tools/endings/all.sh $^ $(BIN)/endings cmd/trainbridge/internal/postmortem/testdata/endings

# The same on a GPU, by a PYTHON with torch for CUDA and cupy: NCCL's hangs, and CUDA's errors with the kernel's lines.
PYTHON ?= python3
endings-gpu:
	$(PYTHON) tools/endings/gpu.py cmd/trainbridge/internal/postmortem/testdata/endings

# The nvml receiver beside nvidia-smi, on a host with a GPU.
gpu-test:
	go test -tags gpu -count=1 -v -run '^TestRealGPU$$' ./receivers/nvmlreceiver

# The campaign of test/e2e/torture_test.go, of which `make test` runs 300 sequences. A campaign goes on with SEED=N; DURATION=30m begins no sequence after that
# time, STEPS=kill,outage draws from these, PEER=-torture.peer runs file_log beside it.
SEED ?= 1
SEQUENCES ?= 10000
DURATION ?= 0
torture: build $(if $(PEER),build-full)
	go test -tags e2e -count=1 -timeout 0 -v -run '^TestTorture$$' ./test/e2e -torture.seed=$(SEED) -torture.sequences=$(SEQUENCES) \
		-torture.duration=$(DURATION) -torture.steps=$(STEPS) $(PEER) | grep -vE '^=== (RUN|NAME)|^ +--- PASS'

# Agents, gateways and a real Kafka, with SEEDS sequences of faults; `make test` runs 3.
SEEDS ?= 200
fleet: build gen jaeger kafka apt
	go test -tags e2e -count=1 -timeout 0 -v -run '$(KAFKA_TESTS)' ./test/e2e -fleet.seed=$(SEED) -fleet.seeds=$(SEEDS)

SOAK ?= 60m
soak: build
	go test -tags e2e -count=1 -timeout 0 -v -run '^TestSoak$$' ./test/e2e -soak=$(SOAK)

# TestMemory of `make test` with more: logs of an hour ago, and calls that never end.
memory: build
	go test -tags e2e -count=1 -timeout 0 -v -run '^TestMemory$$' ./test/e2e -memory.files=200000 -memory.age=1h -memory.calls=1000000

# golangci-lint runs vet too.
lint:
	$(TOOL) golangci-lint run ./...
	cd tools && $(TOOL) golangci-lint run --config=../.golangci.yml ./semconv ./wheel ./words
	go -C tools run ./words $(CURDIR)
	tools/check-generated.sh
	tools/vuln.sh

vuln:
	tools/vuln.sh

# The modules that are in each binary, as CycloneDX.
sbom: $(BIN)/trainbridge.cdx.json $(BIN)/trainbridge-full.cdx.json
%.cdx.json: % builder-config.yaml tools/go.mod
	$(TOOL) cyclonedx-gomod bin -json -std -version v$$(sed -n 's/^  version: //p' builder-config.yaml) -output $@ $<

generate:
	go -C tools run ./semconv $(CURDIR)
	for c in $(COMPONENTS); do (cd $$c && $(TOOL) mdatagen metadata.yaml); done
	$(TOOL) golangci-lint fmt ./...

fuzz:
	tools/fuzz.sh $(FUZZTIME)

# The answers of PyTorch's fr_trace that internal/flightrecorder is compared with, anew: TORCH is site-packages, or the wheel of torch 2.15.0 unzipped.
fr-trace:
	go test ./internal/flightrecorder -run TestOracle -torch $(abspath $(TORCH))

bench: build build-full gen jaeger tables
	bench/run.sh

run: build gen # the script makes jaeger and apt, after the report, which needs neither
	tools/run.sh

clean:
	rm -rf bin .trainbridge tq-logs megatron-logs
