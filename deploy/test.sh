#!/usr/bin/env bash
# Installs what is missing, lints, builds and runs every test. `deploy/test.sh --filter NAME` runs some.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" kcat openjdk-17-jre-headless pgbouncer shellcheck

say "Lint"
swift format lint --strict --recursive Sources Tests Package.swift
shellcheck -x deploy/*.sh .ci/run

say "Build"
swift build --build-tests --explicit-target-dependency-import-check error

say "Test"
# The runner's own summary is the last thing it prints.
exec swift test --skip-build "$@"
