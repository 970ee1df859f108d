# shellcheck shell=bash disable=SC2034
# Sourced by demo.sh and test.sh: installs the packages that a bare Debian 12 machine with Swift lacks.

build_packages=(libcurl4-openssl-dev libpq-dev librdkafka-dev libssl-dev libuv1-dev node-llhttp pkg-config zlib1g-dev)
runtime_packages=(ca-certificates nginx-light postgresql procps)

bold='' plain=''
if [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '%s==> %s%s\n' "$bold" "$*" "$plain" >&2; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need PACKAGE...: installs the missing packages.
need() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing ${missing[*]}"
  # The packages would start a PostgreSQL cluster and an nginx site, which take ports. Reelhaul starts its own. sudo keeps no
  # variables of its caller.
  local apt=(env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -y -q --no-install-recommends -o DPkg::Lock::Timeout=300)
  [ "$(id -u)" = 0 ] || apt=(sudo "${apt[@]}")
  "${apt[@]}" update >/dev/null
  "${apt[@]}" install "${missing[@]}" >/dev/null ||
    die "could not install ${missing[*]}; install them by hand and run this again"
}

need_swift() {
  command -v swift >/dev/null || die "swift is not on PATH; install Swift 6.2 or newer from https://www.swift.org/install/"
  local version
  version=$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9]+)\.([0-9]+).*/\1 \2/p' | head -n 1)
  # shellcheck disable=SC2086 # two words
  set -- $version
  [ "${1:-0}" -gt 6 ] || { [ "${1:-0}" = 6 ] && [ "${2:-0}" -ge 2 ]; } ||
    die "Swift ${1:-?}.${2:-?} is too old; 6.2 or newer is needed"
}
