#!/usr/bin/env bash
# Replaces the workers of a fleet under load by those of this version, and verifies that nothing was lost:
#
#   deploy/upgrade.sh [COMMIT]     the version before; default: the last tag
#
# The version before starts PostgreSQL, the broker and its workers, which download some hundred files, some of them large,
# all of them throttled. Meanwhile this version's `migrate` runs, its workers start beside the old ones, and the old ones are
# stopped. At the end every task must have succeeded, every file must be the origin's, no task may have run twice at the same
# time, and every task must have all its events.
#
# The version before is built once, in .build/upgrade.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

commit=${1:-$(git describe --tags --abbrev=0 2>/dev/null || true)}
[ -n "$commit" ] || die "there is no tag: name the commit of the version before"
commit=$(git rev-parse --verify --quiet "$commit^{commit}") || die "there is no commit $1"

need_swift
need "${build_packages[@]}" "${runtime_packages[@]}" kcat python3

before=.build/upgrade/$commit/reelhaul
if [ ! -x "$before" ]; then
  say "Build ${commit:0:12}"
  source=$(dirname "$before")/source
  rm -rf "$source"
  mkdir -p "$source"
  git archive "$commit" | tar -x -C "$source"
  swift build -c release --product reelhaul --package-path "$source"
  cp "$(swift build -c release --package-path "$source" --show-bin-path)/reelhaul" "$before"
  rm -rf "$source"
fi
before=$PWD/$before
say "Build this version"
swift build -c release --product reelhaul
after=$(swift build -c release --show-bin-path)/reelhaul

small=400 large=6
directory=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-upgrade.XXXXXX")
# PostgreSQL runs as another user where this script runs as root.
chmod 755 "$directory"
origin='' fleet='' old=() new=()

# end SIGNAL PID: ends a process of this script, and waits for it.
end() {
  kill -s "$1" "$2" 2>/dev/null || true
  wait "$2" 2>/dev/null || true
}

clean() {
  local code=$? worker
  trap - EXIT
  for worker in "${old[@]}" "${new[@]}"; do end KILL "$worker"; done
  [ -z "$fleet" ] || end TERM "$fleet"
  [ -z "$origin" ] || end TERM "$origin"
  if [ "$code" = 0 ]; then rm -rf "$directory"; else say "All logs are in $directory"; fi
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
    sleep 0.1
  done
}

query() { psql -qtAX -v ON_ERROR_STOP=1 "$REELHAUL_POSTGRES" -c "$1"; }
succeeded() { query "select count(*) from task where state = 'succeeded'"; }
has_succeeded() { [ "$(succeeded)" -ge "$1" ]; }
# runs_in PID...: whether each of these workers runs something now.
runs_in() {
  local IFS=,
  [ "$(query "select count(distinct pid) from run join worker on worker.id = worker_id where pid in ($*)")" = $# ]
}

say "Start an origin, and a fleet of ${commit:0:12}"
mkdir "$directory/origin" "$directory/nginx"
python3 - "$directory/origin" "$small" "$large" <<'PYTHON'
import os, sys
root, small, large = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for n in range(small):
    with open(f"{root}/small-{n}.mp4", "wb") as file: file.write(os.urandom(60_000 + 200 * n))
for n in range(large):
    with open(f"{root}/large-{n}.mp4", "wb") as file: file.write(os.urandom(60_000_000 + n))
PYTHON
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
user=''
[ "$(id -u)" != 0 ] || user='user root;'
cat >"$directory/nginx/nginx.conf" <<NGINX
$user
daemon off;
pid "$directory/nginx/nginx.pid";
events { worker_connections 1024; }
http {
  log_format times '\$uri \$msec \$request_time \$body_bytes_sent';
  access_log "$directory/nginx/access.log" times;
  client_body_temp_path "$directory/nginx/body";
  proxy_temp_path "$directory/nginx/proxy";
  fastcgi_temp_path "$directory/nginx/fastcgi";
  uwsgi_temp_path "$directory/nginx/uwsgi";
  scgi_temp_path "$directory/nginx/scgi";
  server { listen 127.0.0.1:$port backlog=1024; root "$directory/origin"; }
}
NGINX
PATH=$PATH:/usr/sbin nginx -e "$directory/nginx/error.log" -c "$directory/nginx/nginx.conf" &
origin=$!
until_true 10 "the origin listens" test -e "$directory/nginx/nginx.pid"

"$before" up --workers 0 --data-dir "$directory/data" >"$directory/up.log" 2>&1 &
fleet=$!
until_true 60 "the fleet is ready" test -e "$directory/data/reelhaul.env"
# shellcheck disable=SC1091 # written by reelhaul up
. "$directory/data/reelhaul.env"
export REELHAUL_CONCURRENCY=8

start_old() {
  "$before" worker >>"$directory/old-${#old[@]}.log" 2>&1 &
  old+=("$!")
}
start_new() {
  "$after" worker >>"$directory/new-${#new[@]}.log" 2>&1 &
  new+=("$!")
}
for _ in 1 2 3; do start_old; done

for ((n = 0; n < large; n++)); do
  echo "{\"kind\":\"download\",\"source\":\"http://127.0.0.1:$port/large-$n.mp4\",\"destination\":\"storage://default/large-$n.mp4\",\"rate\":1000000,\"priority\":1}"
done >"$directory/batch"
for ((n = 0; n < small; n++)); do
  echo "{\"kind\":\"download\",\"source\":\"http://127.0.0.1:$port/small-$n.mp4\",\"destination\":\"storage://default/small-$n.mp4\",\"rate\":30000}"
done >>"$directory/batch"
"$before" batch "$directory/batch" >/dev/null
total=$((small + large))
until_true 120 "workers of the version before download" has_succeeded $((small / 10))
until_true 60 "all of them run something" runs_in "${old[@]}"

say "Migrate under load: $(succeeded) of $total tasks have succeeded"
"$after" migrate >"$directory/migrate.log" 2>&1 || die "$(cat "$directory/migrate.log")"
cat "$directory/migrate.log"
at_migration=$(succeeded)
until_true 120 "workers of the version before go on with the new schema" has_succeeded $((at_migration + small / 10))

say "Start workers of this version beside those before: $(succeeded) have succeeded"
for _ in 1 2 3; do start_new; done
until_true 60 "all six run something" runs_in "${old[@]}" "${new[@]}"
until_true 120 "both versions go on" has_succeeded $(($(succeeded) + small / 10))

say "Stop the workers before: $(succeeded) have succeeded"
[ "$(succeeded)" -lt $((total - small / 10)) ] || die "there is not enough left to do: raise the numbers in this script"
for worker in "${old[@]}"; do kill -TERM "$worker"; done
for worker in "${old[@]}"; do wait "$worker" || die "a worker of the version before ended with $?"; done
old=()

say "Wait for the end: $(succeeded) have succeeded"
is_over() { [ "$(query "select count(*) from task where state in ('succeeded', 'failed', 'canceled')")" = "$total" ]; }
until_true 300 "all tasks are over" is_over
is_relayed() { [ "$(query "select count(*) from outbox")" = 0 ]; }
until_true 60 "the outbox is relayed" is_relayed
for worker in "${new[@]}"; do kill -TERM "$worker"; done
for worker in "${new[@]}"; do wait "$worker" || die "a worker of this version ended with $?"; done
new=()

say "Verify"
[ "$(succeeded)" = "$total" ] || die "only $(succeeded) of $total tasks have succeeded: $(
  query "select state, error_code, error_message, count(*) from task where state <> 'succeeded' group by 1, 2, 3")"
(cd "$directory/origin" && sha256sum ./*.mp4) >"$directory/sums"
(cd "${REELHAUL_STORAGE#default=}" && sha256sum --quiet --check "$directory/sums") || die "a file is not the origin's"
violations=$(query "select audit()")
[ -z "$violations" ] || die "the audit: $violations"
query "select id, sequence from task" >"$directory/tasks"
kcat -b "$REELHAUL_KAFKA" -t "${REELHAUL_TOPIC_PREFIX}events" -C -o beginning -e -q >"$directory/events"
end TERM "$origin"
origin=''
python3 - "$directory" "$small" <<'PYTHON'
import collections, json, sys
directory, small = sys.argv[1], int(sys.argv[2])
problems = []

# Each task's events are numbered from 1 without a gap, and a run ends before the next one begins.
events = collections.defaultdict(dict)
for line in open(f"{directory}/events"):
    event = json.loads(line)
    events[event["taskId"]].setdefault(event["sequence"], event["type"])
handed_over = 0
for line in open(f"{directory}/tasks"):
    task, last = line.strip().split("|")
    numbers = sorted(events[task])
    if numbers != list(range(1, int(last) + 1)):
        problems.append(f"task {task}: events {numbers} of {last}")
        continue
    runs = False
    for number in numbers:
        kind = events[task][number]
        if kind == "started":
            if runs: problems.append(f"task {task}: it started while it ran")
            runs = True
        elif kind in ("released", "retrying", "succeeded"):
            if not runs: problems.append(f"task {task}: it ended without a start")
            runs = False
        handed_over += kind == "released"
    if events[task][numbers[-1]] != "succeeded": problems.append(f"task {task}: the last event is {kind}")

# A small file is fetched by one request at a time. What a run of another worker asks for begins when the former has ended.
requests = collections.defaultdict(list)
sent = 0
for line in open(f"{directory}/nginx/access.log"):
    path, end, seconds, size = line.split()
    sent += int(size)
    # Not the request for one byte that a download ends with.
    if path.startswith("/small") and int(size) > 1: requests[path].append((float(end) - float(seconds), float(end)))
if len(requests) != small: problems.append(f"the origin was asked for {len(requests)} of {small} small files")
for path, times in requests.items():
    times.sort()
    for (_, end), (begin, _) in zip(times, times[1:]):
        if begin < end - 0.05: problems.append(f"{path}: two requests at the same time, {end - begin:.3f} s")

for problem in problems[:20]: print(problem)
print(f"{len(events)} tasks, {handed_over} hand-overs, {sent} bytes sent by the origin, {len(problems)} problems")
sys.exit(bool(problems))
PYTHON
say "The upgrade lost nothing"
