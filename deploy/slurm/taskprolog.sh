#!/bin/sh
# TaskProlog of slurmd, as the job's user before each task: what in the job sends OTLP finds the job's collector.
log=/var/lib/trainbridge-slurm/$SLURM_JOB_ID/log
port=$(sed -n 's/^free ports:.* TRAINBRIDGE_OTLP_PORT=\([0-9]*\).*/\1/p' "$log" 2>/dev/null | tail -n 1)
[ -z "$port" ] || echo "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:$port"
