#!/bin/sh
# Installs the Debian packages of tools/packages.txt that are missing. Asks
# nothing.
set -eu
list=$(dirname "$0")/packages.txt
wanted=$(cat "$list")
missing=
for package in $wanted; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null |
        grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "installing:$missing"
as_root=
if [ "$(id -u)" != 0 ]; then
    as_root="sudo -n"
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
