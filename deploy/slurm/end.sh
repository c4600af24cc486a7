#!/bin/sh
# end.sh PID LOG SECONDS: ends the collector PID, which prints to LOG, when all lines were accepted, and after so many seconds in any case.
# 1: not all were accepted.
pid=$1 log=$2

# all_accepted: no byte is unread and no line waits for the backend's answer. A job that ends at once comes before the collector's first line, with its ports.
all_accepted() {
  port=$(sed -n 's/^free ports:.* TRAINBRIDGE_TELEMETRY_PORT=\([0-9]*\).*/\1/p' "$log" | tail -n 1)
  curl -sf "http://${TRAINBRIDGE_LISTEN:-127.0.0.1}:${port:-8888}/metrics" |
    awk '/^trainbridge_tail_(lag|pending)[{ ]/ { n += $NF; seen = 1 } END { exit !seen || n > 0 }'
}

quiet=0
for _ in $(seq "$3"); do
  kill -0 "$pid" 2>/dev/null || break
  if all_accepted; then quiet=$((quiet + 1)); else quiet=0; fi
  [ $quiet -lt 7 ] || break # files that others write, and new directories, are looked for every 5 s
  sleep 1
done
kill "$pid" 2>/dev/null
for _ in $(seq 15); do
  kill -0 "$pid" 2>/dev/null || break
  sleep 1
done
[ $quiet -ge 7 ]
