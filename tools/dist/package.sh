#!/usr/bin/env bash
# Packs one binary, with its man pages, completions and list of modules:
#
#   tools/dist/package.sh BINARY ARCH SHARE OUT KIND...
#
# ARCH is Go's; SHARE a directory of share.sh; a KIND is tar.NAME, deb, rpm, apk, wheel or image. All times are SOURCE_DATE_EPOCH, the commit's by default.
set -eu
binary=$(realpath "$1") arch=$2 share=$(realpath "$3") out=$(realpath -m "$4")
shift 4
cd "$(dirname "$0")/../.."
VERSION=$(sed -n 's/^  version: //p' builder-config.yaml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export VERSION SOURCE_DATE_EPOCH ARCH=$arch
umask 022
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
go tool -modfile=tools/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp -version "v$VERSION" -output "$work/trainbridge.cdx.json" "$binary"

# tree DIR: what each package has, as DIR/bin and DIR/share.
tree() {
  install -D "$binary" "$1/bin/trainbridge"
  cp -r "$share" "$1/share"
  mkdir -p "$1/share/doc/trainbridge"
  cp -r LICENSE otelcol-config.yaml deploy/slurm "$work/trainbridge.cdx.json" "$1/share/doc/trainbridge"
}

# archive DIR FILE...: a tar archive of these on stdout.
archive() {
  local dir=$1
  shift
  tar -C "$dir" --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -c "$@"
}

# nfpm KIND
nfpm() {
  local stage=$work/$1
  mkdir -p "$stage/etc"
  tree "$stage/root/usr"
  cp -r deploy/packages "$stage/scripts"
  cp deploy/packages/trainbridge.env "$stage/etc"
  if [ "$1" != apk ]; then # Alpine has no systemd
    install -Dm644 deploy/systemd/trainbridge.service "$stage/root/usr/lib/systemd/system/trainbridge.service"
    install -Dm644 deploy/packages/trainbridge.sysusers "$stage/root/usr/lib/sysusers.d/trainbridge.conf"
  fi
  if [ "$1" = deb ]; then # Debian's places for these two
    mv "$stage/root/usr/share/zsh/site-functions" "$stage/root/usr/share/zsh/vendor-completions"
    mv "$stage/root/usr/share/doc/trainbridge/LICENSE" "$stage/root/usr/share/doc/trainbridge/copyright"
  fi
  find "$stage" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  (cd "$stage" && "$OLDPWD/bin/tools/nfpm" package -f "$OLDPWD/tools/dist/nfpm.yaml" -p "$1" -t "$out/" >/dev/null)
}

# An OCI layout of the binary alone, in a tar archive.
image() {
  local layout=$work/layout created
  created=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
  mkdir -p "$work/rootfs/usr/bin" "$work/state/var/lib/trainbridge"
  cp "$binary" "$work/rootfs/usr/bin/trainbridge"
  archive "$work/rootfs" usr >"$work/layer.tar"
  # A volume that is made for the image gets the owner that its place has.
  tar -C "$work/state" --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=65532 --group=65532 --numeric-owner -rf "$work/layer.tar" var/lib/trainbridge
  umoci init --layout "$layout"
  umoci new --image "$layout:$VERSION"
  umoci raw add-layer --no-history --image "$layout:$VERSION" "$work/layer.tar"
  umoci config --image "$layout:$VERSION" --no-history --created "$created" --os linux --architecture "$arch" --config.user 65532:65532 \
    --config.entrypoint /usr/bin/trainbridge --config.env TRAINBRIDGE_STATE_DIR=/var/lib/trainbridge --config.volume /var/lib/trainbridge \
    --config.workingdir / --config.label org.opencontainers.image.version="$VERSION" --config.label org.opencontainers.image.licenses=Apache-2.0
  umoci gc --layout "$layout"
  archive "$layout" . >"$out/trainbridge-$VERSION-image-$arch.tar"
}

for kind; do
  case $kind in
    tar.*)
      name=trainbridge-$VERSION-${kind#tar.}
      tree "$work/tar/$name"
      archive "$work/tar" "$name" | gzip -n9 >"$out/$name.tar.gz"
      ;;
    deb | rpm | apk) nfpm "$kind" ;;
    wheel)
      cp -r "$share" "$work/wheel"
      mkdir -p "$work/wheel/doc/trainbridge"
      cp -r deploy/slurm "$work/wheel/doc/trainbridge" # for users without root: docs/guides/megatron-slurm.md
      go -C tools run ./wheel -version "$VERSION" -binary "$binary" -share "$work/wheel" -license "$PWD/LICENSE" -readme "$PWD/deploy/packages/wheel.md" \
        -sbom "$work/trainbridge.cdx.json" -time "$SOURCE_DATE_EPOCH" -out "$out" >/dev/null
      ;;
    image) image ;;
    *)
      echo "package.sh: no kind $kind" >&2
      exit 2
      ;;
  esac
done
