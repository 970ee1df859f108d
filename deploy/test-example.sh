#!/usr/bin/env bash
# Builds the examples against the products alone, runs their tests, kills the worker of Examples/Transcode in the middle of a
# task, and lets Examples/Follow follow a download over HTTP. Before that it checks the names and the documentation of the
# products.
# test.sh calls it after the main build.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

example=Examples/Transcode
strict=(--package-path "$example" --explicit-target-dependency-import-check error)

deploy/test-names.sh
deploy/test-docs.sh

say "Example: build"
swift build --build-tests "${strict[@]}"
swift build --package-path Examples/Follow --explicit-target-dependency-import-check error
say "Example: test"
swift test --skip-build --package-path "$example"

reelhaul="$(swift build --show-bin-path)/reelhaul"
bin=$(swift build --package-path "$example" --show-bin-path)
[ -x "$reelhaul" ] || die "build the main package first: swift build"

directory=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-example.XXXXXX")
# If this script runs as root, PostgreSQL runs as another user.
chmod 755 "$directory"
origin='' fleet='' workers=()

# end SIGNAL PID: ends a process of this script, and waits for it.
end() {
  kill -s "$1" "$2" 2>/dev/null || true
  wait "$2" 2>/dev/null || true
}

clean() {
  local code=$? worker
  trap - EXIT
  for worker in "${workers[@]}"; do
    # A worker leads its own session, so this also ends an ffmpeg that has survived its worker.
    pkill -KILL -s "$worker" || true
    wait "$worker" 2>/dev/null || true
  done
  [ -z "$origin" ] || end TERM "$origin"
  [ -z "$fleet" ] || end TERM "$fleet"
  [ "$code" = 0 ] || tail -n 20 "$directory"/*.log >&2
  rm -rf "$directory"
  exit "$code"
}
trap clean EXIT
trap 'exit 130' INT TERM

# until_true SECONDS WHAT COMMAND...: waits until the command succeeds.
until_true() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@"; do
    [ "$SECONDS" -lt "$deadline" ] || die "in vain: $what"
    sleep 0.2
  done
}

# Sets `worker` to the process of a new transcode worker.
start_worker() {
  setsid "$bin/transcode-worker" >>"$directory/worker.log" 2>&1 &
  worker=$!
  workers+=("$worker")
}

# member NAME: a member of the task's document, or of its output.
member() { "$reelhaul" show "$task" --json | sed -nE "s/.*\"$1\":\"([^\"]*)\".*/\1/p" | head -n 1; }
has_state() { [ "$(member state)" = "$1" ]; }
is_over() { has_state succeeded || has_state failed || has_state canceled; }
transcodes() { pgrep -x -s "$worker" ffmpeg >/dev/null; }
has_no_ffmpeg() { ! transcodes; }

# The number of requests for the video at the origin. One download may need several.
requests() { grep -c 'GET /clip.mp4' "$directory/origin.log"; }

say "Example: start a fleet and an origin"
mkdir "$directory/origin"
ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=1280x720:rate=30:duration=60 -c:v libx264 -preset ultrafast \
  "$directory/origin/clip.mp4"
python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$directory/origin" >"$directory/origin.log" 2>&1 &
origin=$!
until_true 10 "the origin serves" grep -q ' port ' "$directory/origin.log"
port=$(sed -nE 's/.* port ([0-9]+).*/\1/p' "$directory/origin.log" | head -n 1)

# The only workers are the example's.
"$reelhaul" up --workers 0 --data-dir "$directory/data" >"$directory/up.log" 2>&1 &
fleet=$!
until_true 60 "the fleet is ready" test -e "$directory/data/reelhaul.env"
# shellcheck disable=SC1091 # written by reelhaul up
. "$directory/data/reelhaul.env"
export REELHAUL_LEASE_SECONDS=3

say "Example: kill the worker while ffmpeg runs"
start_worker
task=$("$bin/transcode-submit" "http://127.0.0.1:$port/clip.mp4" 360 storage://default/films/clip.mp4)
until_true 60 "the worker runs ffmpeg, after its first checkpoint" transcodes
kill -KILL "$worker"
until_true 5 "ffmpeg ends with its worker" has_no_ffmpeg
before=$(requests)
video=$directory/data/storage/default/films/clip.mp4
[ ! -e "$video" ] || die "the video is there although its worker died before it was complete"

say "Example: another worker continues"
start_worker
until_true 90 "the task is over" is_over
has_state succeeded || die "the task is $(member state): $("$reelhaul" show "$task")"
[ "$(member video)" = storage://default/films/clip.mp4 ] || die "the task has no output: $("$reelhaul" show "$task" --json)"
[ "$(ffprobe -v error -select_streams v -show_entries stream=height -of csv=p=0 "$video")" = 360 ] ||
  die "$video is no video of 360 lines"
ffmpeg -nostdin -v error -xerror -i "$video" -f null - || die "$video cannot be played"
[ "$(requests)" = "$before" ] || die "the video was fetched again, so the checkpoint was not used"

say "Example: a program that has the HTTP API only follows a download"
follow="$(swift build --package-path Examples/Follow --show-bin-path)/follow"
"$follow" "http://127.0.0.1:$port/clip.mp4" storage://default/followed.mp4 | tee "$directory/follow.log"
grep -qx 'succeeded 100 %' "$directory/follow.log" || die "the download was not followed to its end"
cmp "$directory/origin/clip.mp4" "$directory/data/storage/default/followed.mp4"
say "Example: done"
