#!/usr/bin/env bash
#
# Fetches Redis 8 and Valkey 8 from Debian 13, for tests on any Debian, without root:
#
#   scripts/server/fetch-servers.sh DIRECTORY
#
# DIRECTORY/redis-8 and DIRECTORY/valkey-8 are then to be put in front of PATH. In both the programs are
# called redis-server, which is looked for first, and redis-cli.
#
# The packages come from the mirror that this machine's apt uses, and are checked as ever. They are
# unpacked with their own C library, and started by its loader: this machine's may be older.

set -euo pipefail

readonly SUITE=trixie
# The servers, and the libraries that they are linked with.
readonly PACKAGES=(
  redis-server redis-tools valkey-server valkey-tools
  libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libsystemd0 libcap2 zlib1g libzstd1
)

mkdir -p "${1:?the directory to fetch into}"
directory=$(cd "$1" && pwd)
apt=$directory/apt
root=$directory/root
mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/archives" "$root"

# This machine's first source, for another suite.
source=/etc/apt/sources.list.d/debian.sources
if [[ ! -f $source ]]; then
  echo "there is no $source to learn the mirror from" >&2
  exit 1
fi
sed -E -e '/^[[:space:]]*$/q' -e "s/^Suites:.*/Suites: $SUITE/" "$source" >"$apt/sources/servers.sources"

export APT_CONFIG=$apt/apt.conf
cat >"$APT_CONFIG" <<EOF
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
EOF
apt-get -qq update
(cd "$apt/archives" && apt-get -qq download "${PACKAGES[@]/%//$SUITE}")
for archive in "$apt/archives"/*.deb; do dpkg -x "$archive" "$root"; done

loader=$(find "$root/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)

# starter NAME PROGRAM: writes the script NAME that starts PROGRAM.
starter() {
  mkdir -p "$(dirname "$directory/$1")"
  cat >"$directory/$1" <<EOF
#!/bin/sh
exec "$loader" --library-path "${loader%/*}" --argv0 $2 "$root/usr/bin/$2" "\$@"
EOF
  chmod +x "$directory/$1"
  "$directory/$1" --version
}
starter redis-8/redis-server redis-server
starter redis-8/redis-cli redis-cli
starter valkey-8/redis-server valkey-server
starter valkey-8/redis-cli valkey-cli
