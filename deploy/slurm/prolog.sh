#!/bin/sh
# Prolog of slurmd, as root on each node of a job: starts the job's collector, as the job's user. A prolog that fails drains the node: this one never does.
here=$(dirname "$0")

start() ( # an error of the shell in what it reads ends the subshell
  # shellcheck source=job.sh
  . "$here/job.sh"
  [ -n "$TRAINBRIDGE_LOGS" ] || return 0
  mkdir -p "$dir/state" || return 1
  chmod 711 "${dir%/*}"
  chmod 750 "$dir" && chown "0:$SLURM_JOB_GID" "$dir" # its log is for the job's group
  chmod 700 "$dir/state" && chown "$SLURM_JOB_UID:$SLURM_JOB_GID" "$dir/state"
  # A session of its own: slurmd ends the prolog's process group, and waits for who has its output open.
  setsid nice -n 10 setpriv --reuid="$SLURM_JOB_UID" --regid="$SLURM_JOB_GID" --init-groups trainbridge </dev/null >>"$dir/log" 2>&1 &
  echo $! >"$dir/pid"
  # taskprolog.sh reads the ports.
  for _ in $(seq 50); do
    ! grep -q '^free ports:' "$dir/log" || return 0
    kill -0 $! 2>/dev/null || return 1
    sleep 0.1
  done
  return 1
)

start || logger -t trainbridge "job $SLURM_JOB_ID has no collector: $(tail -n 1 "/var/lib/trainbridge-slurm/$SLURM_JOB_ID/log" 2>&1)"
exit 0
