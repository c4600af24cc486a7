#!/usr/bin/env bash
# Installs Debian's prometheus (server and promtool) unless both are there.
set -eu
command -v prometheus >/dev/null && command -v promtool >/dev/null && exit 0
echo "installing the Debian package prometheus"
# The package would start a server of its own on :9090; exit 101 is "action forbidden" to invoke-rc.d.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus >/dev/null
