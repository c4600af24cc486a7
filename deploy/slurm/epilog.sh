#!/bin/sh
# Epilog of slurmd, as root on each node of a job: has the job's collector end when the backend has accepted all, and writes a report into the
# job's folder. An epilog that fails drains the node: this one never does.
here=$(dirname "$0")

finish() ( # an error of the shell in what it reads ends the subshell
  # shellcheck source=job.sh
  . "$here/job.sh"
  [ -e "$dir/pid" ] || return 0
  pid=$(cat "$dir/pid")
  if grep -qzFx "TRAINBRIDGE_STATE_DIR=$dir/state" "/proc/$pid/environ"; then # the pid is nobody else's by now
    # The node waits for half a minute; where the backend is away the collector goes on, beside the next job.
    # shellcheck disable=SC2016 # they are the arguments
    setsid sh -c '"$1/end.sh" "$2" "$3/log" 86400 && rm -r "$3"' sh "$here" "$pid" "$dir" </dev/null >/dev/null 2>&1 &
    for _ in $(seq 30); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 1
    done
    ! kill -0 "$pid" 2>/dev/null || say "the collector goes on until the backend has accepted all, for a day at most: $dir/log"
  else
    say "the collector ended before the job: $(tail -n 1 "$dir/log")"
  fi
  [ "$first_node" = "$SLURMD_NODENAME" ] || return 0
  set -f
  IFS=,
  # shellcheck disable=SC2086 # an argument for each glob
  as_user timeout 60 trainbridge report --run "${TRAINBRIDGE_RUN_ID:-slurm-$SLURM_JOB_ID}" --service "$TRAINBRIDGE_SERVICE" \
    -o "$SLURM_JOB_WORK_DIR/trainbridge-$SLURM_JOB_ID.html" $TRAINBRIDGE_LOGS >/dev/null 2>"$dir.report" || say "no report: $(tail -n 1 "$dir.report")"
  rm -f "$dir.report"
)

finish
exit 0
