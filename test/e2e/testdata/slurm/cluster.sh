#!/bin/bash
# A controller and one node of Debian's slurm-wlm on this host, as root in a mount, UTS and PID namespace of its own, with deploy/slurm set up as docs/reference/slurm.md says.
# What it writes to /etc, /var, /usr/local and /usr/share/doc is gone with the namespace.
#
#   cluster.sh WORK TRAINBRIDGE DEPLOY_SLURM OTLP AWAY CONTROLLER_PORT NODE_PORT
#
# OTLP is a backend, and AWAY one that is not there before WORK/back is.
set -eu
work=$1 bin=$2 deploy=$3 otlp=$4 away=$5
hostname node0
mkdir -p "$work/upper"
mount -t tmpfs none "$work/upper"
for dir in /etc /var /usr/local /usr/share/doc; do
  mkdir -p "$work/upper$dir" "$work/upper/work$dir"
  mount -t overlay overlay -o "lowerdir=$dir,upperdir=$work/upper$dir,workdir=$work/upper/work$dir" "$dir"
done
mount -t tmpfs none /run
rm -rf /var/spool/slurm*
mkdir -p /run/munge /var/log/munge /var/spool/slurmctld /var/spool/slurmd /etc/slurm /etc/trainbridge
printf '127.0.0.1 localhost node0\n' >/etc/hosts
printf '#!/bin/sh\nshift 2\necho "$@" >>%s/syslog\n' "$work" >/usr/local/bin/logger # there is no syslog
chmod 755 /usr/local/bin/logger
install "$bin" /usr/local/bin/trainbridge
mkdir -p /usr/share/doc/trainbridge
cp -r "$deploy" /usr/share/doc/trainbridge/slurm
mkdir -p /usr/local/share/doc/trainbridge
cp -r "$deploy" /usr/local/share/doc/trainbridge/slurm # where train.sbatch looks for it, beside /usr/local/bin
export otlp away
bash -euc "$(cat)" # docs/reference/slurm.md, on the standard input
cat >>/etc/slurm/slurm.conf <<EOF
ClusterName=cluster
SlurmctldHost=node0
SlurmctldPort=$6
SlurmdPort=$7
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MailProg=/bin/true
NodeName=node0 CPUs=8 State=UNKNOWN
PartitionName=gpu Nodes=ALL Default=YES MaxTime=INFINITE State=UP
PartitionName=cpu Nodes=ALL MaxTime=INFINITE State=UP
EOF
munged --force
slurmctld
slurmd
# until_ SECONDS COMMAND: waits until it is so.
until_() {
  for _ in $(seq "$1"); do
    if eval "$2"; then return; fi
    sleep 1
  done
  echo "not within $1 s: $2" >&2
  tail -n 20 "$work"/slurm*.log >&2
  exit 1
}
until_ 60 'scontrol ping | grep -q UP && sinfo -h -p gpu -o %T | grep -q idle'

cat >"$work/train.py" <<'EOF'
import json, os, sys, time
log, first, last = sys.argv[1:]
if log != "-":
    os.makedirs(os.path.dirname(log), exist_ok=True)
with sys.stdout if log == "-" else open(log, "a") as f:
    for step in range(int(first), int(last) + 1):
        print(json.dumps({"timestamp": time.time(), "step": step, "loss": 2.5, "step_time_s": 0.1}), file=f, flush=True)
        time.sleep(0.1)
EOF
# submit FOLDER OPTION...: as a user who is not root.
submit() {
  mkdir -p "$work/$1"
  chown nobody:nogroup "$work/$1"
  (cd "$work/$1" && setpriv --reuid=nobody --regid=nogroup --clear-groups sbatch --parsable "${@:2}")
}
# Two jobs at a time, each with a collector: steps on stdout, then in a file that comes later. The last line comes as the job ends.
for job in a b; do
  submit $job -J "job $job" --wrap "
    python3 $work/train.py - 1 20
    python3 $work/train.py logs/\$SLURM_JOB_ID/deeper/rank_0.jsonl 21 40
    echo \$OTEL_EXPORTER_OTLP_ENDPOINT >endpoint
    bash -c ': </dev/tcp/127.0.0.1/'\${OTEL_EXPORTER_OTLP_ENDPOINT##*:} && echo open >>endpoint" >"$work/$job.id"
done
# One whose backend is away as it ends.
submit away -J away --wrap "python3 $work/train.py - 1 40" >"$work/away.id"
# One that slurm.env gives none.
submit none -p cpu -J none --wrap 'sleep 1; echo "none:$OTEL_EXPORTER_OTLP_ENDPOINT"' >"$work/none.id"
# One that brings its own.
sed "s#python train.py#python3 $work/train.py - 1 40#; s#^\#SBATCH --job-name=.*#\#SBATCH --job-name=own#" "$deploy/train.sbatch" >"$work/own.sbatch"
TRAINBRIDGE_OTLP_ENDPOINT=$otlp submit own -p cpu "$work/own.sbatch" >"$work/own.id"
until_ 150 '[ -z "$(squeue -h)" ]'
sinfo -h -p gpu -o %T >"$work/state"
ls -A /var/lib/trainbridge-slurm >"$work/left"
touch "$work/back"
until_ 60 '[ -z "$(ls -A /var/lib/trainbridge-slurm)" ]'
# What is wrong with slurm.env stops neither jobs nor the node.
echo 'if' >>/etc/trainbridge/slurm.env
submit broken --wrap 'echo ran' >"$work/broken.id"
until_ 60 '[ -z "$(squeue -h)" ]'
sinfo -h -p gpu -o %T >>"$work/state"
pgrep -c trainbridge >"$work/collectors" || true
for pid in /run/slurmd.pid /run/slurmctld.pid /run/munge/munged.pid; do kill "$(cat $pid)"; done
