#!/bin/sh
# After the files of a deb or rpm are there, new or newer. Nothing is started that did not run before.
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers trainbridge.conf
elif ! getent passwd trainbridge >/dev/null; then
  useradd --system --user-group --no-create-home --home-dir /var/lib/trainbridge --shell /usr/sbin/nologin trainbridge
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart trainbridge.service
fi
