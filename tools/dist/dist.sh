#!/usr/bin/env bash
# `make dist`: the files of a release, in DIR. The same commit gives the same bytes.
#
#   tools/dist/dist.sh DIR
set -eu
out=$(realpath -m "$1")
cd "$(dirname "$0")/../.."
tools/dist/binaries.sh "$out/build"
rm -f "$out"/trainbridge[-_]* "$out/SHA256SUMS"
host=$out/build/linux_$(go env GOHOSTARCH)_static/trainbridge
tools/dist/share.sh "$host" "$out/build/share"
package() { tools/dist/package.sh "$out/build/$1/trainbridge" "$2" "$out/build/share" "$out" "${@:3}"; }
for arch in amd64 arm64; do
  package "linux_$arch" "$arch" "tar.linux-$arch" deb rpm wheel
  package "linux_${arch}_static" "$arch" "tar.linux-$arch-static" apk wheel image
  package "darwin_$arch" "$arch" "tar.darwin-$arch" wheel
done
(cd "$out" && sha256sum trainbridge[-_]* >SHA256SUMS)
ls -l "$out"
