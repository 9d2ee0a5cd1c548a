#!/usr/bin/env bash
# Makes the release of what was built: `cargo xtask dist` calls it.
#   release.sh BUILT VERSION TREE OUT PACKER [--debug]
# BUILT: the binary. TREE: the file tree that every form of the release contains; the licences of third parties are there
# already. OUT: the results. PACKER: cargo-deb. --debug: only the package, made quickly. The same source gives the same
# bytes: every file has the time of SOURCE_DATE_EPOCH (reproducible-builds.org), else that of the last commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
built=$1 version=$2 tree=$3 out=$4 packer=$5 debug=${6:-}
doc=$tree/usr/share/doc/orphand
orphand=$tree/usr/bin/orphand
# Debian's version: the packaging has a number of its own, where the program's does not change.
debian=$version-1
# Whom Debian's files name. There is no public address yet; `.invalid` is one for sure (RFC 2606).
maintainer="The orphand authors <orphand@orphand.invalid>"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)} || {
  echo "SOURCE_DATE_EPOCH is not set, and git cannot tell when the last commit was made" >&2
  exit 1
}
export SOURCE_DATE_EPOCH

# The tree: it defines where each file is on the user's machine.
mkdir -p "$tree/usr/bin"
strip -o "$orphand" "$built"
chmod 755 "$orphand"
install -Dm644 packaging/systemd/orphand.service -t "$tree/usr/lib/systemd/system"
install -Dm644 packaging/sysusers.d/orphand.conf -t "$tree/usr/lib/sysusers.d"
install -Dm644 packaging/conf.d-README "$tree/etc/orphand/conf.d/README"
install -Dm644 packaging/deb/lintian-overrides "$tree/usr/share/lintian/overrides/orphand"
install -Dm644 packaging/deb/copyright README.md -t "$doc"
cp -rL docs examples "$doc"
cp -rL packaging/catalog "$tree/usr/lib/systemd/catalog"

# What the binary itself says: the commented default configuration, completions, manual pages.
"$orphand" config default > "$tree/etc/orphand/config.toml"
mkdir -p "$tree/usr/share"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
"$orphand" completions bash > "$tree/usr/share/bash-completion/completions/orphand"
"$orphand" completions zsh > "$tree/usr/share/zsh/vendor-completions/_orphand"
"$orphand" completions fish > "$tree/usr/share/fish/vendor_completions.d/orphand.fish"
mkdir -p "$tree/usr/share/man/all"
"$orphand" man --dir "$tree/usr/share/man/all"
for page in "$tree"/usr/share/man/all/*; do
  install -Dm644 "$page" -t "$tree/usr/share/man/man${page##*.}"
  rm "$page"
done
rmdir "$tree/usr/share/man/all"

# What changed is in the changelog; Debian's own says so.
cp CHANGELOG.md "$doc/changelog"
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
printf 'orphand (%s) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- %s  %s\n' \
  "$debian" "$maintainer" "$date" > "$doc/changelog.Debian"
gzip -9n --force "$doc"/{changelog,changelog.Debian,THIRD-PARTY} "$tree"/usr/share/man/man*/*
# Whatever the checkout's modes are.
chmod -R u=rwX,go=rX "$tree"

# No dpkg is needed for the package. `[package.metadata.deb]` in monitor/Cargo.toml lists its contents.
"$packer" --no-build --no-strip --quiet --package orphand --deb-version "$debian" --maintainer "$maintainer" \
  ${debug:+--fast} --compress-system --output "$out" > /dev/null
if [ -z "$debug" ]; then
  # For other systems: the tree as an archive with one folder at its top, and the binary by itself, for `scp`.
  name=orphand-$version-$(uname -m)-linux
  # S: what symbolic links point to stays.
  tar --create --use-compress-program='gzip -9n' --file "$out/$name.tar.gz" --sort=name --owner=0 --group=0 \
    --numeric-owner --format=gnu "--mtime=@$SOURCE_DATE_EPOCH" --transform="s,^\\.,$name,S" -C "$tree" .
  cp "$orphand" "$out/$name"
fi
cd "$out"
sums=$(sha256sum -- *)
echo "$sums" > SHA256SUMS
