#!/usr/bin/env bash
# From a bare Debian 12 machine with Swift to the main job: installs what is missing, builds, and runs a fleet of three
# workers that download a dozen videos while one worker is killed, one task paused and one canceled. `--keep` leaves
# the fleet running.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" ffmpeg

say "Building (release)"
swift build -c release --product reelhaul

exec "$(swift build -c release --show-bin-path)/reelhaul" up --demo "$@"
