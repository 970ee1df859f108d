#!/usr/bin/env bash
# Shows the main job on a bare Debian 12 machine with Swift: installs missing packages, builds, and runs a fleet of
# three workers that download a dozen videos while one worker is killed, one task paused and one canceled. One video is
# uploaded to an S3 store, through the death of another worker, and one is copied there. `--keep` leaves the fleet running.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" ffmpeg python3 python3-venv
# Has rclone, which serves S3 and reads it back.
deploy/peers.sh

say "Building (release)"
swift build -c release --product reelhaul

PATH="$PWD/.build/peers/bin:$PATH" exec "$(swift build -c release --show-bin-path)/reelhaul" up --demo "$@"
