#!/usr/bin/env bash
# Makes ROOT the root of this process, in a mount namespace of its own, and becomes there what the README tells people to type, as
# `nohup .. &` starts it. The processes, the kernel and the network are the machine's: what is measured is the kernel itself.
#   system.sh ROOT CACHE RUST CHECKOUT LOCK [VARIABLE=VALUE..] -- [FILTER]
# CACHE: what is downloaded and built stays there for the next time. RUST: the toolchain. LOCK: the file by which the tests of all
# checkouts on this machine wait for each other.
set -euo pipefail
root=$1 cache=$2 rust=$3 checkout=$4 lock=$5
shift 5
variables=()
while [ "$1" != -- ]; do variables+=("$1"); shift; done
shift

mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
# tracefs and bpffs are for the command itself to mount.
mount -t sysfs sysfs "$root/sys"
mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
for file in /etc/resolv.conf /etc/hosts; do cp -L "$file" "$root$file"; done
# Whoever this machine trusts. What is installed must not start services: they would live on beside the machine's own.
if [ -d /usr/local/share/ca-certificates ]; then
  cp -RL /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  chroot "$root" update-ca-certificates > /dev/null 2>&1
fi
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

mkdir -p "$root/opt/rust" "$root/root/.cargo" "$cache"/{cargo,target,archives/partial}
mount --bind "$rust" "$root/opt/rust"
mount -o remount,ro,bind "$root/opt/rust"
cp -R --no-preserve=ownership "$checkout" "$root/root/orphand"
mkdir "$root/root/orphand/target"
mount --bind "$cache/target" "$root/root/orphand/target"
mount --bind "$cache/cargo" "$root/root/.cargo"
mount --bind "$cache/archives" "$root/var/cache/apt/archives"
[ -e "$lock" ] || : > "$lock"
: > "$root/tmp/orphand-tests.lock"
mount --bind "$lock" "$root/tmp/orphand-tests.lock"

cd "$root"
mkdir .old
pivot_root . .old
PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
hash -r
umount -l /.old
rmdir /.old
cd /root/orphand
trap '' HUP INT QUIT
# It ends when nobody waits for it any more: Ctrl-C it does not hear.
exec env -i HOME=/root LANG=C.UTF-8 PATH="$PATH" "${variables[@]}" setpriv --pdeathsig TERM cargo xtask test "$@"
