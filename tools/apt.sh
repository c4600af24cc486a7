#!/usr/bin/env bash
# Installs the Debian packages that the tests and `make run` use, unless their commands are there. With `kafka`: those that a broker is installed and run with;
# `endings`: Slurm; `venv`: Python; `grafana`: node; `dist`: those that make a release; `release`: those that test it.
set -eu
packages=()
if [ "${1:-}" = kafka ]; then
  command -v java >/dev/null || packages+=(default-jre-headless)
  command -v mvn >/dev/null || packages+=(maven)
  command -v ip >/dev/null || packages+=(iproute2) # a test cuts agents off
elif [ "${1:-}" = endings ]; then
  command -v slurmd >/dev/null || packages+=(slurm-wlm munge)
  command -v ip >/dev/null || packages+=(iproute2)
elif [ "${1:-}" = grafana ]; then
  command -v npm >/dev/null || packages+=(nodejs npm)
elif [ "${1:-}" = venv ]; then
  python3 -c 'import ensurepip, venv' 2>/dev/null || packages+=(python3-venv)
elif [ "${1:-}" = dist ]; then
  command -v umoci >/dev/null || packages+=(umoci)
elif [ "${1:-}" = release ]; then
  command -v mmdebstrap >/dev/null || packages+=(mmdebstrap)
  command -v rpm >/dev/null || packages+=(rpm)
  command -v runc >/dev/null || packages+=(runc)
  command -v skopeo >/dev/null || packages+=(skopeo)
  command -v slurmd >/dev/null || packages+=(slurm-wlm munge)
  command -v qemu-aarch64-static >/dev/null || packages+=(qemu-user-static)
  [ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || packages+=(libc6-arm64-cross)
else
  command -v prometheus >/dev/null && command -v promtool >/dev/null && command -v curl >/dev/null || packages+=(prometheus curl ca-certificates)
  # Tests open the HTML report in it, and Jaeger's web page where that is.
  command -v chromium >/dev/null || packages+=(chromium)
  command -v systemd-analyze >/dev/null || packages+=(systemd) # it judges the service of the deb
fi
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
