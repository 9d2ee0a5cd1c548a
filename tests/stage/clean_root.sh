#!/usr/bin/env bash
# Makes Debian's smallest root in FOLDER with mmdebstrap, from the sources that apt uses on this machine, with these
# packages beside what every root has. What was in the folder before is gone; what is mounted in it stays.
#   clean_root.sh FOLDER PACKAGE[,PACKAGE..]
set -euo pipefail
folder=$1 with=$2
rm -rf --one-file-system "$folder"
mkdir -p "$(dirname "$folder")"
# The sources of the distribution itself, not what others offer for it.
sources=$(
  # shellcheck disable=SC2016
  apt-get indextargets --format '$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' \
    | sed -nE 's/^(Debian|Ubuntu)\|//p'
)
[ -n "$sources" ] || { echo "apt has no sources of Debian or Ubuntu: apt-get update" >&2; exit 1; }
# What apt is told here of the way to its sources: proxies, and whether their dates count.
mapfile -t ways < <(apt-config dump | sed -nE 's/^(Acquire::(https?::|Check-).*)/--aptopt=\1/p')
mmdebstrap --quiet --variant=minbase "--include=$with" "${ways[@]}" '' "$folder" - <<< "$sources"
