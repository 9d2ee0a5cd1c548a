#!/usr/bin/env bash
# Installs orphand into a root of its own and becomes a service manager there, in the PID namespace and cgroups of the host: only
# so can the daemon run as the service it is shipped as. Runs as the first process of a new mount namespace.
#   install.sh ROOT SHARED ORPHAND PACKAGING
# ROOT: an empty folder to build in. SHARED: a folder that has the same path inside. The root is an overlay of /: nothing of
# the machine is changed. The manager is root's user manager, which applies a unit's User= and sandbox as the system's does (one
# that is the system's must be pid 1). With XDG_RUNTIME_DIR=/run and state in /var/lib it has the system's paths, too.
set -euo pipefail
root=$1 shared=$2 orphand=$3 packaging=$4

mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir "$root"/{upper,work,merged}
mount -t overlay overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" "$root/merged"
r=$root/merged
for folder in proc sys dev; do mount --rbind "/$folder" "$r/$folder"; done
for folder in run tmp var/lib; do mount -t tmpfs -o mode=755 tmpfs "$r/$folder"; done
chmod 1777 "$r/tmp"
mkdir -p "$r$shared"
mount --bind "$shared" "$r$shared"

install -m 755 "$orphand" "$r/usr/bin/orphand"
install -D -m 644 "$packaging/systemd/orphand.service" "$r/etc/systemd/user/orphand.service"
install -D -m 644 "$packaging/sysusers.d/orphand.conf" "$r/usr/lib/sysusers.d/orphand.conf"
install -D -m 644 "$packaging/catalog/orphand.catalog" "$r/usr/lib/systemd/catalog/orphand.catalog"
mkdir -p "$r/etc/orphand" "$r/run/systemd/system" "$r/run/systemd/journald.conf.d" "$r/run/log/journal" "$r/run/home"
tr -d - < /proc/sys/kernel/random/uuid > "$r/etc/machine-id"
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nRateLimitBurst=0\n' > "$r/run/systemd/journald.conf.d/stage.conf"
cat > "$r/etc/systemd/user/scene.target" <<'UNIT'
[Unit]
DefaultDependencies=no
UNIT

cd "$r"
mkdir -p .old
pivot_root . .old
umount -l /.old
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
systemd-sysusers /usr/lib/sysusers.d/orphand.conf
journalctl --update-catalog
/lib/systemd/systemd-journald < /dev/null &
exec env -i TERM=dumb PATH="$PATH" HOME=/run/home XDG_RUNTIME_DIR=/run XDG_CONFIG_HOME=/var/lib XDG_STATE_HOME=/var/lib \
  SYSTEMD_LOG_TARGET=journal /lib/systemd/systemd --user --unit=scene.target < /dev/null
