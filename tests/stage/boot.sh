#!/usr/bin/env bash
# Boots this machine's own systemd as pid 1 of a system of its own. Runs as the first process of new pid, mount, uts, ipc, net
# and cgroup namespaces, in the cgroup that is to be the system's root; what it mounts is gone with them.
#   boot.sh ROOT SHARED NAME v2|hybrid
# ROOT: an empty folder to build in. SHARED: a folder that has the same path inside. The root is an overlay of /: nothing of
# the machine is changed. Only what a service manager needs is started, none of the machine's own services.
set -euo pipefail
root=$1 shared=$2 name=$3 layout=$4

mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir "$root"/{upper,work,merged}
mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/merged"
r=$root/merged

mount -t proc proc "$r/proc"
mount -t sysfs -o ro sysfs "$r/sys"
# The kernel has one set of these for all: they must not be written from inside.
for kernel in sys sysrq-trigger; do
  [ -e "$r/proc/$kernel" ] || continue
  mount --bind "$r/proc/$kernel" "$r/proc/$kernel"
  mount -o remount,ro,bind "$r/proc/$kernel"
done
for folder in run dev tmp; do mount -t tmpfs -o mode=755 tmpfs "$r/$folder"; done
chmod 1777 "$r/tmp"
mkdir "$r"/dev/{pts,shm} "$r/run/host"
ln -s /proc/self/fd "$r/dev/fd"
ln -s pts/ptmx "$r/dev/ptmx"
for device in null zero full random urandom tty; do
  touch "$r/dev/$device"
  mount --bind "/dev/$device" "$r/dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$r/dev/pts"
mount -t tmpfs tmpfs "$r/dev/shm"
mkdir -p "$r$shared"
mount --bind "$shared" "$r$shared"

if [ "$layout" = v2 ]; then
  mount -t cgroup2 cgroup2 "$r/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 tmpfs "$r/sys/fs/cgroup"
  mkdir "$r"/sys/fs/cgroup/{unified,systemd}
  mount -t cgroup2 cgroup2 "$r/sys/fs/cgroup/unified"
  mount -t cgroup -o none,name=systemd cgroup "$r/sys/fs/cgroup/systemd"
  mount -o remount,ro,bind "$r/sys/fs/cgroup"
fi

units=$r/etc/systemd/system
mkdir -p "$units" "$r/etc/systemd/user"
echo "$name" > "$r/etc/hostname"
: > "$r/etc/fstab"
tr -d - < /proc/sys/kernel/random/uuid > "$r/etc/machine-id"
echo 'scene:x:54321:54321::/run/user/54321:/bin/sh' >> "$r/etc/passwd"
echo 'scene:x:54321:' >> "$r/etc/group"
# Devices, file systems, kernel settings and clean-ups are the machine's business. A folder of links in /etc beats none of those
# in /usr, so each is masked by its name.
for unit in "$r"/{usr/lib,etc}/systemd/system/{sysinit,sockets,local-fs}.target.wants/*; do
  case ${unit##*/} in
    systemd-journald* | dbus.socket | '*') ;;
    *) ln -sfn /dev/null "$units/${unit##*/}" ;;
  esac
done
for unit in systemd-udevd systemd-logind systemd-journal-flush systemd-remount-fs; do ln -sfn /dev/null "$units/$unit.service"; done
cat > "$units/scene.target" <<'UNIT'
[Unit]
Requires=sysinit.target dbus.socket
After=sysinit.target dbus.socket
AllowIsolate=yes
DefaultDependencies=no
UNIT
cat > "$r/etc/systemd/user/scene.target" <<'UNIT'
[Unit]
Requires=dbus.socket
After=dbus.socket
UNIT
# As the distribution's, without PAM and logind: `systemctl start user@UID` is a login.
cat > "$units/user@.service" <<'UNIT'
[Service]
User=%i
Type=notify
ExecStartPre=+/usr/bin/install -d -m 700 -o %i /run/user/%i
ExecStart=/lib/systemd/systemd --user --unit=scene.target
Environment=XDG_RUNTIME_DIR=/run/user/%i HOME=/run/user/%i
Slice=user-%i.slice
KillMode=mixed
Delegate=pids memory
TimeoutStopSec=5
UNIT

cd "$r"
mkdir -p .old
pivot_root . .old
umount -l /.old
exec env -i container=scene TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=scene.target --show-status=no --log-target=journal < /dev/null
