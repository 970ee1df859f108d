#!/usr/bin/env bash
# Compares the rate of tasks that do nothing with that of pgqueuer, a queue in PostgreSQL for Python: once all are
# queued, and end to end. pgqueuer gets the PostgreSQL of `reelhaul up`, with its settings, and nothing else runs meanwhile.
# Needs Python 3 with venv, and the package index; takes about 15 minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" python3-venv
swift build -c release --product reelhaul >&2
reelhaul=$(swift build -c release --show-bin-path)/reelhaul

directory=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-peers.XXXXXX")
chmod 755 "$directory" # PostgreSQL may run as another user
up=
finish() {
  if [ -n "$up" ]; then kill "$up" 2>/dev/null || true; wait "$up" || true; fi
  rm -rf "$directory"
}
trap finish EXIT

say "Installing pgqueuer"
python3 -m venv "$directory/venv"
"$directory/venv/bin/pip" install -q pgqueuer==1.6.0 asyncpg==0.32.0 uvloop==0.23.0

say "pgqueuer"
REELHAUL_CONFIG='' "$reelhaul" up --workers 0 --data-dir "$directory/data" >"$directory/up.log" 2>&1 &
up=$!
until [ -e "$directory/data/reelhaul.env" ]; do
  kill -0 "$up" 2>/dev/null || die "the fleet did not start: $(cat "$directory/up.log")"
  sleep 0.1
done
# shellcheck disable=SC1091
url=$(. "$directory/data/reelhaul.env" && echo "$REELHAUL_POSTGRES")
psql -q "$url" -c 'create database peer'
"$directory/venv/bin/python" deploy/bench-pgqueuer.py "$(sed -E 's|(//[^/]*/)[^?]*|\1peer|' <<<"$url")" >"$directory/peer.json"
kill "$up"; wait "$up" || true
up=

say "reelhaul"
"$reelhaul" bench noop backlog --json | tee "$directory/own.json" >&2

python3 - "$directory/peer.json" "$directory/own.json" <<'END'
import json, statistics, sys

peer = json.load(open(sys.argv[1]))
text, own = open(sys.argv[2]).read(), {}
while text.strip():
    report, end = json.JSONDecoder().raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    own.update({f"{report['benchmark']}: {f['name']}": f["median"] for f in report["figures"]})
for name, ours, goal in [
    ("drained", "backlog: 1,000,000 queued, not refilled", 2.0),
    ("endToEnd", "noop: tasks", 1.2),
]:
    theirs = statistics.median(peer[name])
    ratio = own[ours] / theirs
    print(f"{name}: reelhaul {own[ours]:.0f}/s, pgqueuer {theirs:.0f}/s "
          f"({min(peer[name]):.0f}–{max(peer[name]):.0f}), {ratio:.2f} × "
          f"(at least {goal}: {'met' if ratio >= goal else 'MISSED'})")
END
