#!/usr/bin/env bash
# Installs what is missing, lints, builds, runs every test, and plants ten bugs that the tests must notice.
# `deploy/test.sh --filter NAME` runs some tests.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" chromium curl ffmpeg fonts-dejavu-core kcat openjdk-17-jre-headless openssl \
  pgbouncer python3 python3-venv shellcheck
deploy/peers.sh

say "Lint"
swift format lint --strict --recursive Sources Tests Package.swift Examples/*/{Package.swift,Sources,Tests}
shellcheck -x deploy/*.sh .ci/run

say "Build"
swift build --build-tests --explicit-target-dependency-import-check error

bundle=$(swift build --show-bin-path)/reelhaulPackageTests.xctest
logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$logs"' EXIT

# Runs tests in the place of this shell, so that who ends it ends them; not through `swift test`, which would wait for another
# one in the same tree. A test that hangs ends its lane.
run() {
  exec timeout --kill-after 10 40m "$bundle" --testing-library swift-testing "$@" 2>&1
}

# Repeats the failures of a log, or its last lines, which name the test that hung.
failures() {
  say "Failed"
  grep -A4 'recorded an issue' "$1" | grep -v '[◇✔]' || tail -n 40 "$1"
}

if [ $# -gt 0 ]; then
  (run "$@")
  exit
fi

# Apache Kafka is started often and lives for seconds.
export JAVA_TOOL_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

say "Test: what is pure, in parallel"
parts='^(ControlAPI|HTTPServer|ReelhaulHTTPClient|ReelhaulWorker|System|Worker)Tests\.'
stores='^(Curl|Kafka|LocalFleet|OTLP|Postgres|ReelhaulClient|Store|TaskStore|TransferEngine)Tests\.'
fleets='^(Chaos|Integration)Tests\.'
uploads='^ChaosTests\.UploadKillTests' # Of the fleets; with them the lane of the parts is as long as the others.
run --skip "$parts" --skip "$stores" --skip "$fleets" | tee "$logs/pure" || { failures "$logs/pure"; exit 1; }
deploy/test-example.sh

# Modules whose tests start real services, or measure time or memory, run one test at a time, because a starved server
# would fail the wrong test. There are three lanes of them: most of these tests wait most of the time.
say "Test: suites with real parts, three at a time"
run --no-parallel --filter "$parts" --filter "$uploads" >"$logs/parts" &
lanes=([$!]=parts)
run --no-parallel --filter "$stores" >"$logs/stores" &
lanes+=([$!]=stores)
run --no-parallel --filter "$fleets" --skip "$uploads" | tee "$logs/fleets" &
lanes+=([$!]=fleets)
failed=()
for lane in "${!lanes[@]}"; do wait "$lane" || failed+=("$logs/${lanes[lane]}"); done
cat "$logs"/{parts,stores}
for log in "${failed[@]}"; do failures "$log"; done
grep -h 'Test run with' "$logs"/{pure,parts,stores,fleets}
[ ${#failed[@]} = 0 ]

say "Mutants: ten bugs that the tests must notice"
deploy/mutants.sh --sample 10
