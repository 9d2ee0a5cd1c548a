#!/usr/bin/env bash
# Tests the released files in a system with almost nothing else installed: `cargo xtask test package`.
#   package.sh PACKAGE BINARY FOLDER [WORD..]
# FOLDER: the roots are made here. WORD..: what makes a command run as root. The tests are those in
# tests/tests/package.rs. Plain `cargo xtask test` runs them, too, with a debug build in an overlay of this machine. Here
# they get the static binary and Debian's smallest root, newly created.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
package=$1 binary=$2 folder=$3
shift 3
root=("$@")

# Whatever lintian finds is a failure; what is as it is for a reason stands in packaging/deb/lintian-overrides.
echo "test: asking lintian" >&2
if ! found=$(lintian --fail-on warning "$package") || [ -n "$found" ]; then
  echo "lintian: $found" >&2
  exit 1
fi

# It needs nothing: it is the only file of its world.
mkdir -p "$folder/empty-root"
cp "$binary" "$folder/empty-root/orphand"
"${root[@]}" chroot "$folder/empty-root" /orphand config show > /dev/null \
  || { echo "the binary is not static, or needs more than itself" >&2; exit 1; }

# Beside what every root has: what makes users where systemd is not, and what people read and complete with.
"${root[@]}" tests/stage/clean_root.sh "$folder/clean-root" systemd-standalone-sysusers,man-db,bash-completion

runner=()
if [ $# -gt 0 ]; then
  words=$(printf '"%s",' "$@")
  runner=(--config "target.'cfg(unix)'.runner=[$words]")
fi
play() { cargo "${runner[@]}" test -p tests --test all -- --include-ignored --test-threads=1 "$@"; }
ORPHAND_PACKAGES=$(dirname "$package") ORPHAND_TEST_ROOT=$folder/clean-root play package::
# This one fails if a static binary asks its own glibc for a user that is in no file: the binary crashes.
ORPHAND_BIN=$binary play --exact front::strangers_are_refused
