#!/usr/bin/env bash
# Writes man pages and completions, as the program says its commands and flags:
#
#   tools/dist/share.sh BINARY DIR
set -eu
binary=$(realpath "$1") made=$(realpath -m "$2") dir=$(realpath -m "$2").new # made whole or not at all: make takes the folder for the result
cd "$(dirname "$0")/../.."
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
umask 022
rm -rf "$dir"
mkdir -p "$dir"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
go test -vet=off -count=1 ./cmd/trainbridge -run '^TestManPages$' -man "$dir/man/man1" >/dev/null
gzip -n9 "$dir"/man/man1/*
"$binary" completion bash >"$dir/bash-completion/completions/trainbridge"
"$binary" completion zsh >"$dir/zsh/site-functions/_trainbridge"
"$binary" completion fish >"$dir/fish/vendor_completions.d/trainbridge.fish"
rm -rf "$made"
mv "$dir" "$made"
