#!/bin/sh
# dpkg --purge takes the state too.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
if [ "$1" = purge ]; then
  rm -rf /var/lib/trainbridge
fi
