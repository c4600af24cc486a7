#!/usr/bin/env bash
# Installs the Debian packages that the tests and `make run` use, unless their commands are there.
set -eu
command -v prometheus >/dev/null && command -v promtool >/dev/null && command -v curl >/dev/null && exit 0
echo "installing the Debian packages prometheus and curl"
# The package would start a server of its own on :9090; exit 101 is "action forbidden" to invoke-rc.d.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends prometheus curl ca-certificates >/dev/null
