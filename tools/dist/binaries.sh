#!/usr/bin/env bash
# Builds the binaries of a release into DIR/<os>_<arch>: for linux with NVML (glibc) and static, for darwin without the collector's Linux parts.
#
#   tools/dist/binaries.sh DIR [linux_amd64|linux_amd64_static|linux_arm64|…]...
set -eu
out=$(realpath -m "$1")
shift
builds=("$@")
((${#builds[@]})) || builds=(linux_amd64 linux_arm64 linux_amd64_static linux_arm64_static darwin_amd64 darwin_arm64)
cd "$(dirname "$0")/../.."

# What is built depends on the commit and the versions of Go and zig, and on nothing of the machine: a commit has as many digits in any clone.
export GOFLAGS="-trimpath -buildvcs=false" GOAMD64=v1 GOARM64=v8.0 CGO_CFLAGS="-O2 -Wno-deprecated-declarations"
ldflags="-s -w -X main.commit=$(git rev-parse --short=12 HEAD)"
ZIG=$(echo "$PWD"/bin/tools/zig/lib/python3*/site-packages/ziglang/zig)
export ZIG PATH=$PWD/tools/dist:$PATH # a compiler without a path is the same in any clone

# nvml_stub FILE: a library with the functions of NVML, by name, for zig-cc. The program that is linked with it names a library of each glibc in its place.
nvml_stub() {
  local header
  header=$(go list -m -f '{{.Dir}}' github.com/NVIDIA/go-nvml)/pkg/nvml/nvml.h
  grep DECLDIR "$header" | grep -oE '\bnvml[A-Z]\w* *\(' | sort -u | sed -E 's/(\w+).*/void \1(void) {}/' >"$1.c"
  "$ZIG" cc -target "$ZIG_TARGET" -shared -nostdlib -Wl,-soname,libm.so.6 -o "$1" "$1.c"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for build in "${builds[@]}"; do
  IFS=_ read -r GOOS GOARCH static <<<"$build"
  export GOOS GOARCH CGO_ENABLED=0
  tags=
  if [[ $build == linux_*_static ]]; then
    tags=timetzdata # an image of nothing else has no zones
  elif [ "$GOOS" = linux ]; then
    [ "$GOARCH" = amd64 ] && cpu=x86_64 || cpu=aarch64
    export CGO_ENABLED=1 CC=zig-cc ZIG_TARGET=$cpu-linux-gnu.2.17 NVML_STUB=$work/$cpu.so
    nvml_stub "$NVML_STUB"
  fi
  go build -tags "$tags" -ldflags="$ldflags" -o "$out/$build/trainbridge" ./cmd/trainbridge
done
