#!/usr/bin/env bash
# Fails when a file that mdatagen writes is not what metadata.yaml says.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"
# A copy of the tree, so that the check never changes the files it checks.
git ls-files -co --exclude-standard -z | grep -zv '^bin/' | xargs -0 cp --parents -t "$work"
make -s -C "$work" generate >/dev/null
if ! diff -rq --exclude=bin --exclude=.git "$work" "$root" | grep -v '^Only in '"$root"; then
  exit 0
fi
echo "generated files are not current: run 'make generate' and commit" >&2
exit 1
