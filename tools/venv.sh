#!/usr/bin/env bash
# Installs the packages of PyPI that tools/<name>/requirements.txt lists into a virtual environment, and links it to the path given. The environment is in the
# user's cache, named by the requirements' checksum: all checkouts share it.
#
#   tools/venv.sh NAME LINK
set -eu
name=$1 link=$2
cd "$(dirname "$0")/$name"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/trainbridge
dir=$cache/$name-$(cksum <requirements.txt | cut -d' ' -f1)
mkdir -p "$cache" "$(dirname "$link")"
exec 9>"$cache/$name.lock"
flock 9
if [ ! -e "$dir/complete" ]; then
  ../apt.sh venv
  rm -rf "$cache/$name"-*
  python3 -m venv "$dir"
  "$dir/bin/pip" install --quiet --no-cache-dir --no-deps -r requirements.txt
  touch "$dir/complete"
fi
ln -sfn "$dir" "$link"
touch "$dir"
