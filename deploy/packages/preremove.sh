#!/bin/sh
# Before the files go: dpkg says remove, or upgrade; rpm how many versions stay. /var/lib/trainbridge, what was read and counted, outlives both.
set -e
case $1 in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now trainbridge.service
    fi
    ;;
esac
