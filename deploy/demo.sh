#!/usr/bin/env bash
# Shows the main job on a bare Debian 12 machine with Swift: installs missing packages, builds, and runs a fleet of
# three workers that download a dozen videos while one worker is killed, one task paused and one canceled. `--keep`
# leaves the fleet running.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" ffmpeg

say "Building (release)"
swift build -c release --product reelhaul

exec "$(swift build -c release --show-bin-path)/reelhaul" up --demo "$@"
