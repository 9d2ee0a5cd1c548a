#!/usr/bin/env bash
# orphand in a virtual machine, with a Debian kernel and with systemd as the real pid 1: `cargo xtask test vm`.
#
# The other tests start systemd in namespaces of this machine, so they use its kernel and its cgroups. This test uses
# neither. QEMU boots a kernel of the distribution, with cgroup2 only. In the guest a service that leaves its servers
# behind is restarted; one daemon observes it, and a second daemon reaps (tests/src/bin/guest). The guest reports what
# happened, and judge.py decides here whether that is right.
#   machine.sh BUILT OUT CACHE
# BUILT: what cargo built. OUT: the machine is made here, and what the guest reported stays. CACHE: the kernel stays.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
packaging=$here/../../packaging
built=$1 out=$2 cache=$3

say() { echo "vm: $*" >&2; }
fail() { say "$@"; exit 1; }

[ "$(uname -m)" = x86_64 ] || fail "the test on a machine of its own knows x86_64 only; all other tests run here"
mkdir -p "$out" "$cache"
# One machine at a time in a build folder.
exec 9> "$out/lock"
flock 9

# Debian's kernel for virtual machines, unpacked and never installed. The rename puts it in place whole.
kernel=$cache/kernel
name=linux-image-cloud-amd64
fetch() {
  local package
  package=$(apt-cache depends "$name" | sed -n 's/^ *Depends: //p' | head -n 1)
  [ -n "$package" ] || return 1
  say "downloading $package"
  (cd "$cache/fresh" && apt-get download -q "$package" > download.log 2>&1 && dpkg-deb -x ./*.deb .)
}
if ! [ -d "$kernel" ]; then
  rm -rf "$cache/fresh"
  mkdir "$cache/fresh"
  sudo=
  [ "$(id -u)" = 0 ] || sudo=sudo
  fetch || { $sudo apt-get update -q > "$cache/update.log" 2>&1 && fetch; } \
    || fail "the guest's kernel is what Debian's $name stands for, and it cannot be had here (logs in $cache)"
  rm -f "$cache"/fresh/*.deb
  mv "$cache/fresh" "$kernel"
fi
image=$(echo "$kernel"/boot/vmlinuz-*)
version=${image##*/vmlinuz-}
modules=lib/modules/$version
[ -d "$kernel/$modules" ] || fail "$kernel is no kernel with its modules: remove it"

# The guest's root: in memory, of this machine's own systemd and of what was built here.
root=$out/root
rm -rf "$root"
mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root"/{etc,proc,sys,dev,run,tmp,var/lib,var/tmp}
for link in bin sbin lib lib64; do ln -s "usr/$link" "$root/$link"; done
ln -s usr/lib/systemd/systemd "$root/init"

# program FROM TO: with the shared libraries that it is linked to.
program() {
  local linked library
  install -D "$1" "$root/$2"
  linked=$(ldd "$1")
  for library in $linked; do
    [ "${library#/}" = "$library" ] || [ -e "$root$library" ] || install -D "$library" "$root$library"
  done
}
# The service manager, how that is told something, the journal; how the kernel loads a module and tracefs is mounted;
# how an agent gives a server a session of its own, and how a daemon ends with whoever started it.
for tool in /usr/lib/systemd/systemd{,-journald} /usr/bin/{systemctl,journalctl,setsid,setpriv,nice,mount} /usr/sbin/modprobe; do
  program "$tool" "${tool#/}"
done
# Since version 255 systemd starts services through it.
executor=/usr/lib/systemd/systemd-executor
! [ -e "$executor" ] || program "$executor" "${executor#/}"
program "$built/orphand" usr/bin/orphand
# These names are those that rules know.
program "$built/guest" scene/bin/guest
program "$built/agent" scene/bin/claude
program "$built/serve" scene/bin/notes-mcp-server

# Units that order the others, the journal and tracefs: none of the machine's services.
units=usr/lib/systemd/system
install -Dm644 -t "$root/$units" \
  "/$units"/{basic,final,local-fs,local-fs-pre,paths,poweroff,shutdown,slices,sockets,swap,sysinit,timers,umount}.target \
  "/$units"/{sys-kernel-tracing.mount,systemd-journald.service,systemd-journald.socket}
install -Dm644 -t "$root/$units" "$packaging/systemd/orphand.service"
install -Dm644 -t "$root/usr/lib/sysusers.d" "$packaging/sysusers.d/orphand.conf"
install -Dm644 -t "$root/etc/systemd/system" "$here"/*.{target,service}
# What units say goes to the console, too.
printf '%s\n' '[Journal]' Storage=volatile ForwardToKMsg=yes ReadKMsg=no RateLimitBurst=0 > "$root/etc/systemd/journald.conf"
echo guest > "$root/etc/hostname"
echo 6f7270686e640000000000000000766d > "$root/etc/machine-id"
: > "$root/etc/fstab"
echo root:x:0:0:root:/root:/bin/sh > "$root/etc/passwd"
echo root:x:0: > "$root/etc/group"
# As the package does when it is installed.
systemd-sysusers --root "$root" orphand.conf
# Who holds the other end of a socket pair is asked of a module, which the kernel loads when it is asked. depmod(8) is
# to know what needs no module.
install -Dm644 -t "$root/$modules" "$kernel/$modules"/modules.{builtin,builtin.modinfo,order}
install -Dm644 -t "$root/$modules/kernel/net/unix" "$kernel/$modules"/kernel/net/unix/*
/usr/sbin/depmod -b "$root" "$version"
# Not compressed: it never leaves the machine.
(cd "$root" && find . | cpio --quiet -o -H newc -R +0:+0) > "$out/root.cpio"

# Version 2 of cgroups only; no mitigations, which cost an emulated machine much; what systemd says goes to the kernel's
# log, notices from there to the console: the first is the kernel's own version.
line="console=ttyS0 loglevel=6 panic=-1 mitigations=off cgroup_no_v1=all systemd.unified_cgroup_hierarchy=1"
line="$line systemd.unit=guest.target systemd.show_status=0 systemd.log_target=kmsg"
# In seconds. Emulated it takes a tenth of this at best, on a busy machine far more.
limit=300
qemu=
trap '[ -z "$qemu" ] || kill "$qemu" 2> /dev/null || true' EXIT
boot() {
  : > "$out/console.log"
  : > "$out/told.log"
  # A guest that hangs, and one whose test was killed, is ended.
  setpriv --pdeathsig TERM timeout --foreground --kill-after=5 "$limit" qemu-system-x86_64 "$@" \
    -cpu max -m 1G -smp 2 -nodefaults -display none -no-reboot -kernel "$image" -initrd "$out/root.cpio" \
    -append "$line" -serial "file:$out/console.log" -serial "file:$out/told.log" \
    < /dev/null 2> "$out/qemu.log" &
  qemu=$!
}
say "booting Linux $version"
if [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
  boot -accel kvm
  # The first word of its kernel comes after half a second.
  for _ in {1..50}; do
    if [ -s "$out/console.log" ] || ! kill -0 "$qemu" 2> /dev/null; then break; fi
    sleep 0.1
  done
  # Some virtual machines offer a KVM in which nothing runs.
  if ! [ -s "$out/console.log" ]; then
    kill "$qemu" 2> /dev/null || true
    { wait "$qemu" || true; } 2> /dev/null
    say "emulated, because /dev/kvm is of no use here: $(tail -n 1 "$out/qemu.log")"
    qemu=
  fi
fi
[ -n "$qemu" ] || boot -accel tcg,thread=multi
ended=0
wait "$qemu" || ended=$?
qemu=
[ "$ended" != 124 ] || fail "the guest did not end within $limit s; its console is $out/console.log"
[ "$ended" = 0 ] || fail "QEMU failed: status $ended: $(tail -n 1 "$out/qemu.log")"
python3 -B "$here/judge.py" "$out/told.log"
