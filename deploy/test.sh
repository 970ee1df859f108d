#!/usr/bin/env bash
# Installs what is missing, lints, builds, runs every test, and plants ten bugs that the tests must notice.
# `deploy/test.sh --filter NAME` runs some tests.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" ffmpeg kcat openjdk-17-jre-headless openssl \
  pgbouncer python3 shellcheck

say "Lint"
swift format lint --strict --recursive Sources Tests Package.swift Examples/*/{Package.swift,Sources,Tests}
shellcheck -x deploy/*.sh .ci/run

say "Build"
swift build --build-tests --explicit-target-dependency-import-check error

# Runs tests. At the end the failures are repeated, followed by the runner's own summary.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() {
  swift test --skip-build "$@" 2>&1 | tee "$log" && return
  say "Failed"
  grep -A4 '^✘' "$log" | grep -v '^[◇✔]' || tail -n 40 "$log"
  exit 1
}

if [ $# -gt 0 ]; then
  run "$@"
  exit
fi

# Modules whose tests start real services run one test at a time, because a starved server would fail the wrong test.
real='^(Chaos|Curl|Integration|Kafka|LocalFleet|Postgres|ReelhaulClient|ReelhaulWorker|TaskStore|TransferEngine|Worker)Tests\.'
say "Test: what is pure, in parallel"
run --skip "$real"
deploy/test-example.sh
say "Test: suites with real parts, one test at a time"
run --no-parallel --filter "$real"
say "Mutants: ten bugs that the tests must notice"
deploy/mutants.sh --sample 10
