# shellcheck shell=sh
# What prolog.sh and epilog.sh know of a job: Slurm's variables (SLURM_JOB_ID, SLURM_JOB_UID, SLURM_JOB_WORK_DIR, …), and by scontrol what
# these do not tell: JOB_NAME and JOB_OUTPUT, the files of stdout and stderr.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
dir=/var/lib/trainbridge-slurm/$SLURM_JOB_ID

job=$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null)
field() { printf '%s\n' "$job" | sed -n "s/^\(JobId=.*\)\{0,1\} \{1,\}$1=//p" | head -n 1; }
JOB_NAME=$(field JobName)
JOB_OUTPUT=$(field StdOut)
errors=$(field StdErr)
[ "$errors" = "$JOB_OUTPUT" ] || JOB_OUTPUT=$JOB_OUTPUT,$errors

# The first node reads what the job writes into its folder; one of several that read a shared file system is enough.
first_node=$(scontrol show hostnames "$SLURM_NODELIST" | head -n 1)
TRAINBRIDGE_LOGS=
if [ "$first_node" = "$SLURMD_NODENAME" ]; then
  TRAINBRIDGE_LOGS="${JOB_OUTPUT:+$JOB_OUTPUT,}$SLURM_JOB_WORK_DIR/logs/$SLURM_JOB_ID/**/*"
fi
export TRAINBRIDGE_LOGS TRAINBRIDGE_SERVICE="$JOB_NAME" TRAINBRIDGE_COLLECTOR="$SLURMD_NODENAME" TRAINBRIDGE_STATE_DIR="$dir/state"
export TRAINBRIDGE_OTLP_PORT=0 TRAINBRIDGE_OTLP_HTTP_PORT=0 TRAINBRIDGE_METRICS_PORT=0 TRAINBRIDGE_TELEMETRY_PORT=0 TRAINBRIDGE_HEALTH_PORT=0
set -a
# shellcheck source=/dev/null
[ ! -e /etc/trainbridge/slurm.env ] || . /etc/trainbridge/slurm.env
set +a

# as_user COMMAND...: with the rights of the job's user, who owns the logs.
as_user() { setpriv --reuid="$SLURM_JOB_UID" --regid="$SLURM_JOB_GID" --init-groups "$@"; }
say() { logger -t trainbridge "job $SLURM_JOB_ID: $*"; }
