#!/usr/bin/env bash
# Installs the real servers and clients that tests compare with, from peers.txt, into .build/peers. Does it again only
# when the list has changed.
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=$(sha256sum deploy/peers.txt)
[ "$(cat .build/peers/stamp 2>/dev/null || true)" != "$stamp" ] || exit 0
python3 -m venv .build/peers
.build/peers/bin/pip install -q -r deploy/peers.txt
printf '%s\n' "$stamp" >.build/peers/stamp
