#!/usr/bin/env bash
# Makes .build/peers, a virtual environment with the Python packages of peers.txt, which tests compare Reelhaul with. Does
# nothing if the list has not changed since. Needs Python 3 with venv, and the package index.
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p .build
exec 9>.build/peers.lock
flock 9
sum=$(sha256sum <deploy/peers.txt)
[ "$(cat .build/peers/sum 2>/dev/null)" != "$sum" ] || exit 0
rm -rf .build/peers
python3 -m venv .build/peers
.build/peers/bin/pip install -q --disable-pip-version-check -r deploy/peers.txt
printf '%s\n' "$sum" >.build/peers/sum
