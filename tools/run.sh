#!/usr/bin/env bash
# `make run`: what the logs say by themselves, as a page and as text, then Jaeger, Prometheus and the collector on them, and what these say.
#   LOGS=glob[,glob]  read these logs, of any kind, instead of generated ones
#   LOGS=dir          read all logs below the directory, as one run
# or, for one receiver only:
#   TRAIN_LOGS=glob[,glob]  read these training logs (Megatron, JSONL, Hugging Face, DeepSpeed, torchtitan, NeMo, verl) instead of generated ones
#   ZMQ_LOGS=glob[,glob]  read these performance logs of ZeroMQ clients instead of generated ones
#   NCCL_LOGS=glob[,glob]  read what NCCL Inspector, its example profiler, the Flight Recorder or VCCL wrote instead of generated ones
#   RUN_ONCE=1        end after printing
#   JAEGER_UI_DIR=dir  a build of Jaeger's web page (packages/jaeger-ui/build of github.com/jaegertracing/jaeger-ui), which Jaeger then serves
set -eu
cd "$(dirname "$0")/.."
bin=$PWD/bin
work=$(mktemp -d)
pids=()
stop() {
  trap - EXIT INT TERM
  if ((${#pids[@]})); then
    kill "${pids[-1]}" 2>/dev/null && wait "${pids[-1]}" 2>/dev/null || true # the collector, while its backend is there
    kill "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap stop EXIT
trap 'exit 0' INT TERM

# start NAME COMMAND...: in the background, its output in $work/NAME.log.
start() {
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
  pids+=($!)
}
# ready NAME URL: waits for a 200 answer.
ready() {
  for _ in $(seq 300); do
    if curl -sf -o /dev/null "$2"; then return; fi
    if ! kill -0 "${pids[-1]}" 2>/dev/null; then break; fi
    sleep 0.1
  done
  echo "$1 did not start; its log:" >&2
  tail -20 "$work/$1.log" >&2
  exit 1
}

mine="${LOGS:-}${TRAIN_LOGS:-}${ZMQ_LOGS:-}${NCCL_LOGS:-}"
if [ -z "$mine" ]; then
  echo "== one job in all formats: verl on 16 GPUs of 2 hosts, 37 steps, of which some are slow for a reason"
  "$bin/trainbridge" gen run --ranks 16 --steps 37 --faults straggler,data_loading,get,put --seed "${SEED:-$RANDOM}" "$work/job"
  echo "== a verl-like log: 4 workers on 2 hosts, 60 batches, a fifth of them with a slow TransferQueue"
  "$bin/gen" tq --out "$work/logs" --workers 4 --batches 60 --ip 10.4.1.33 --overhead-high 0.2 --seed "${SEED:-$RANDOM}"
  echo "== a Megatron log: 120 iterations on 8 GPUs, some of them slow"
  mkdir "$work/train"
  "$bin/gen" megatron --out "$work/train/megatron.log" --steps 120 --log-interval 1 --slow 0.04 --seed "${SEED:-$RANDOM}"
  echo "== a ZeroMQ client's log: 5 forward passes of 16 layers, some of them slow to serialize"
  mkdir "$work/zmq"
  "$bin/gen" zmq --out "$work/zmq/zmq_performance.log" --passes 5 --serialize-high 0.2 --seed "${SEED:-$RANDOM}"
  echo "== NCCL Inspector's logs of 16 GPUs on 2 nodes, one of them slow"
  "$bin/gen" nccl --out "$work/nccl" --truth none --steps 60 --verbose --slow-rank 11 --slow-by 0.06 --seed "${SEED:-$RANDOM}"
fi

# The answer from the files alone: no server is needed, so it comes before they are built. The run is that of the traces in Jaeger, to which the page leads.
if [ -z "$mine" ]; then
  logs=("$work/job" --run demo)
else
  logs=()
  for list in "${LOGS:-}" "${TRAIN_LOGS:-}" "${ZMQ_LOGS:-}" "${NCCL_LOGS:-}"; do
    IFS=, read -ra some <<<"$list"
    logs+=("${some[@]}")
  done
  # A directory stands for all files below it, which are one run.
  if [ -d "${LOGS:-}" ]; then
    export TRAINBRIDGE_RUN_ID="${TRAINBRIDGE_RUN_ID:-$(basename "$(realpath "$LOGS")")}"
    logs+=(--run "$TRAINBRIDGE_RUN_ID")
    LOGS+="/**"
  fi
fi
start page "$bin/trainbridge" report --serve "${logs[@]}" ${JAEGER_UI_DIR:+--jaeger http://127.0.0.1:16686}
page=""
for _ in $(seq 100); do
  page=$(grep -m 1 '^http://' "$work/page.log" || true)
  if [ -n "$page" ] || ! kill -0 "${pids[-1]}" 2>/dev/null; then break; fi # the report says why
  sleep 0.1
done
if [ -n "$page" ]; then
  echo "A page of these logs, in a browser of this host: $page"
  echo
fi
"$bin/trainbridge" report "${logs[@]}"
echo
for port in 4317 4318 8888 8889 9090 13133 13134 14317 16685 16686; do
  if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    echo "Port $port of 127.0.0.1 is taken, by another make run, collector, Jaeger or Prometheus: stop it, then servers can show these logs too." >&2
    exit 1
  fi
done
make --no-print-directory -s jaeger apt

# Without the sampler's variable Jaeger sends traces of its own to 127.0.0.1:4317, our otlp receiver.
OTEL_TRACES_SAMPLER=always_off start jaeger "$bin/tools/jaeger" --config tools/run/jaeger.yaml
ready jaeger http://127.0.0.1:13134/status
start prometheus prometheus --config.file=tools/run/prometheus.yml --storage.tsdb.path="$work/prometheus" \
  --web.listen-address=127.0.0.1:9090 --enable-feature=exemplar-storage,native-histograms --log.level=warn
ready prometheus http://127.0.0.1:9090/-/ready
none="[]" # an empty list: the defaults of the built-in configuration are of no interest here
# collect ENV...: starts the collector. step_join waits for less than it does by default: here all is read at once.
collect() {
  env TRAINBRIDGE_TQ_LOGS=$none TRAINBRIDGE_FLAGSCALE_LOGS=$none TRAINBRIDGE_TRAIN_LOGS=$none TRAINBRIDGE_ZMQ_LOGS=$none TRAINBRIDGE_NCCL_LOGS=$none \
    TRAINBRIDGE_EVENT_LOGS=$none \
    TRAINBRIDGE_STATE_DIR="$work/state" "$@" "$bin/trainbridge" --config otelcol-config.yaml --config yaml:processors::step_join::wait:\ 1s \
    >>"$work/trainbridge.log" 2>&1 &
  pids+=($!)
  ready trainbridge http://127.0.0.1:13133/
}

tail_metric() { curl -sf http://127.0.0.1:8888/metrics | awk -v m="$1" '$1 ~ "^"m"([{]|$)" { n += $2 } END { printf "%d", n }'; }
# What the collector says of logs that it cannot find or understand.
notes() { { grep -E 'No log to read|Nothing matches|no record|No receiver understands|passed over|are two runs' "$work/trainbridge.log" || true; } | cut -f3 |
  sed -e "s#, $work/none ([a-z_, ]*)##" -e "s#$work/none ([a-z_, ]*), ##" -e "\\#$work/none#d" -e 's/^/   ! /'; }
# settled LOGS: waits until the collector has read lines and none of them waits; or, as some may wait for a second half that never comes, until nothing has changed
# for 3 s. Then until step_join has sent what it adds to the steps that are over.
settled() {
  local logs=$1 last="" same=0
  echo "== reading $logs"
  for i in $(seq 600); do
    read -r lines records sent pending <<<"$(tail_metric trainbridge_tail_lines) $(tail_metric trainbridge_tail_records) $(tail_metric trainbridge_tail_sent) $(tail_metric trainbridge_tail_pending)"
    if [ "$lines $sent" = "${last:-}" ]; then same=$((same + 1)); else same=0; fi
    if [ "$sent" -gt 0 ] && [ "$same" -ge 1 ] && { [ "$pending" = 0 ] || [ "$same" -ge 6 ]; }; then break; fi
    last="$lines $sent"
    if [ $((i % 10)) = 0 ]; then
      if [ "$lines" = 0 ] && grep -q 'No log to read' "$work/trainbridge.log"; then break; fi # its note, below, says why
      if [ "$lines" = 0 ]; then echo "   waiting for the first line of $logs"
      elif [ "$records" = 0 ]; then echo "   waiting for the first record: $lines lines read"
      elif [ "$pending" != 0 ]; then echo "   waiting for $pending of $records records to be whole and accepted"
      else echo "   reading: $lines lines"; fi
    fi
    sleep 0.5
  done
  read -r ignored rejected pending <<<"$(tail_metric trainbridge_tail_ignored) $(tail_metric trainbridge_tail_rejected) $(tail_metric trainbridge_tail_pending)"
  last="" same=0
  for _ in $(seq 40); do
    read -r now <<<"$(tail_metric otelcol_processor_step_join_windows)"
    if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi
    if [ "$same" -ge 4 ]; then break; fi
    last=$now
    sleep 0.5
  done
  said="$lines lines read, $ignored not for us"
  if [ "$rejected" != 0 ]; then said+=", $rejected not understood"; fi
  if [ "$pending" != 0 ]; then said+=", $pending wait for what belongs to them"; fi
  echo "   $said"
  echo
  notes
}

if [ -z "$mine" ]; then
  collect TRAINBRIDGE_LOGS="$work/job/*/*" TRAINBRIDGE_RUN_ID=demo TRAINBRIDGE_SERVICE=demo
  settled "$work/job/*/*"
  "$bin/trainbridge" show --jaeger http://127.0.0.1:16686 --service demo
  kill "${pids[-1]}"
  wait "${pids[-1]}" 2>/dev/null || true
  unset 'pids[-1]'
  echo
  LOGS="$work/logs/*.err,$work/train/*.log,$work/zmq/*.log,$work/nccl/*.log"
  export TRAINBRIDGE_DEVICE=A100
fi
collect TRAINBRIDGE_LOGS="${LOGS:-$work/none}" TRAINBRIDGE_TRAIN_LOGS="${TRAIN_LOGS:-$none}" TRAINBRIDGE_ZMQ_LOGS="${ZMQ_LOGS:-$none}" \
  TRAINBRIDGE_NCCL_LOGS="${NCCL_LOGS:-$none}"
settled "${LOGS:-} ${TRAIN_LOGS:-} ${ZMQ_LOGS:-} ${NCCL_LOGS:-}"
# Those with records, one after the other.
first=1
for kind in tq_trace:verl train_log:train flagscale:flagscale zmq_rpc:zeromq nccl:nccl; do
  [ "$(tail_metric "trainbridge_tail_sent[{][^}]*\"${kind%:*}\"[^}]*[}]")" != 0 ] || continue
  [ -z "${TRAINBRIDGE_SERVICE:-}" ] || [ "$first" = 1 ] || continue
  [ "$first" = 1 ] || echo
  first=0
  "$bin/trainbridge" show --jaeger http://127.0.0.1:16686 --service "${TRAINBRIDGE_SERVICE:-${kind#*:}}"
done

jaeger="Jaeger's API   http://127.0.0.1:16686   (this build has no web page: JAEGER_UI_DIR names one; or point TRAINBRIDGE_OTLP_ENDPOINT at a Jaeger of your own)"
if [ -n "${JAEGER_UI_DIR:-}" ]; then jaeger="Jaeger         http://127.0.0.1:16686"; fi
cat <<END

Page of logs   $page
$jaeger
Prometheus     http://127.0.0.1:9090/graph?g0.expr=histogram_quantile(0.95,sum%20by(tq_function,tq_stage)(tq_stage_duration_seconds))&g0.tab=1
Metrics page   http://127.0.0.1:8889/metrics
Another trace  bin/trainbridge show --trace ID
END
if [ "${RUN_ONCE:-}" = 1 ]; then exit 0; fi
echo "Running until Ctrl-C; new lines and files are picked up."
wait
