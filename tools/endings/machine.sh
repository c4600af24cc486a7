#!/usr/bin/env bash
# Runs COMMAND where nothing names this machine: /job is OUT with what is in this directory, /opt/venv is VENV, the hosts are node0 and node1, each with a network
# of its own and a cable between them. Needs root; the endings in memory need cgroups of version 1.
#
#   tools/endings/machine.sh VENV OUT COMMAND...
set -eu
venv=$1 out=$2
shift 2
mkdir -p "$out" /job /opt/venv
cp "$(dirname "$0")"/* "$out"
export venv out
exec unshare --uts --net --mount --ipc bash -eu -c '
  mount --bind "$out" /job
  mount --bind "$venv" /opt/venv
  mount -t tmpfs none /tmp
  printf "127.0.0.1 localhost\n10.0.0.1 node0\n10.0.0.2 node1\n" >/tmp/hosts
  mount --bind /tmp/hosts /etc/hosts
  hostname node0
  unshare --uts --net sleep infinity &
  export NODE1=$!
  trap "kill $NODE1 || true" EXIT
  sleep 0.5
  ip link set lo up
  ip link add eth0 type veth peer name eth1 netns $NODE1
  ip addr add 10.0.0.1/24 dev eth0
  ip link set eth0 up
  nsenter -t $NODE1 --net --uts bash -c "hostname node1; ip link set lo up; ip link set eth1 name eth0; ip addr add 10.0.0.2/24 dev eth0; ip link set eth0 up"
  cd /job
  "$@"' machine.sh "$@"
