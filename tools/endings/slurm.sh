#!/usr/bin/env bash
# Endings that Slurm tells of, with a controller and one node of Debian's slurm-wlm (apt-get install slurm-wlm munge).
#
#   tools/endings/machine.sh VENV OUT /job/slurm.sh [NAME...]
set -eu
for dir in /etc/slurm /var/spool /var/log /run; do mount -t tmpfs none $dir; done
mkdir -m 755 -p /run/munge /var/log/munge /var/spool/slurmctld /var/spool/slurmd
cat >/etc/slurm/slurm.conf <<EOF
ClusterName=cluster
SlurmctldHost=node0
SlurmUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurmctld.log
SlurmdLogFile=/var/log/slurmd.log
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=2
JobAcctGatherParams=${OVER_MEMORY:-NoShared}
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
KillWait=5
MailProg=/bin/true
ReturnToService=2
NodeName=node0 CPUs=8 RealMemory=12000 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
EOF
printf 'CgroupPlugin=cgroup/v1\nConstrainRAMSpace=%s\n' "${CONSTRAIN:-yes}" >/etc/slurm/cgroup.conf
munged --force
slurmctld
slurmd
trap 'set +e; scancel -u root; sleep 5; kill -9 $(cat /run/slurmctld.pid /run/slurmd.pid /run/munge/munged.pid)' EXIT
tries=0
until scontrol ping | grep -q UP && sinfo -h -o %T | grep -q idle; do
  sleep 1
  test $((++tries)) -lt 60 || { tail -n 20 /var/log/slurm*.log && exit 1; }
done
python3 /job/slurm.py "$@"
