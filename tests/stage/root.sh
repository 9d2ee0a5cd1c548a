#!/usr/bin/env bash
# A root for packages: an overlay of BASE that nobody else sees, in a mount namespace of its own; what it mounts is gone with it.
#   root.sh TOP BASE
# TOP: an empty folder to build in. Says `ready`, and lives until its input ends.
set -euo pipefail
top=$1 base=$2

mount -t tmpfs -o mode=755 tmpfs "$top"
mkdir "$top"/{upper,work,merged}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$top/upper,workdir=$top/work" "$top/merged"
r=$top/merged
# Otherwise the index of the manual pages is made anew at each installation, which takes seconds.
rm -f "$r/var/lib/man-db/auto-update"
mount -t proc proc "$r/proc"
for folder in run dev tmp; do mount -t tmpfs -o mode=755 tmpfs "$r/$folder"; done
chmod 1777 "$r/tmp"
ln -s /proc/self/fd "$r/dev/fd"
for device in null zero full random urandom tty; do
  touch "$r/dev/$device"
  mount --bind "/dev/$device" "$r/dev/$device"
done
echo ready
exec cat > /dev/null
