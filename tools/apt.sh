#!/usr/bin/env bash
# Installs the Debian packages that the tests and `make run` use, unless their commands are there.
set -eu
packages=()
command -v prometheus >/dev/null && command -v promtool >/dev/null && command -v curl >/dev/null || packages+=(prometheus curl ca-certificates)
# Tests open the HTML report in it, and Jaeger's web page where that is.
command -v chromium >/dev/null || packages+=(chromium)
[ ${#packages[@]} -gt 0 ] || exit 0
echo "installing the Debian packages ${packages[*]}"
# The package would start a server of its own on :9090; exit 101 is "action forbidden" to invoke-rc.d.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
