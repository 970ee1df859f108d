#!/usr/bin/env bash
# Plants the bugs of Tests/mutants one at a time, and runs the tests that must notice each.
#
#   deploy/mutants.sh                  all of them
#   deploy/mutants.sh NAME…            the patches whose file names contain one of the words
#   deploy/mutants.sh --sample N       N of the quick ones (see below)
#   deploy/mutants.sh --list           lists the patches and plants nothing
#
# A patch begins with two comment lines: the guarantee that it breaks, and `# Suites: REGEX`, the tests that must notice.
# A third line, `# Quick`, marks a patch that only pure tests are run for: they start no server and end within seconds.
# Warnings are errors, as everywhere.
# `--sample N` takes N of the quick ones, evenly spread over their sorted names; where it begins follows from the commit,
# so that one commit always gives the same sample, and all have their turn as commits go by.
#
# Nothing is planted in the working tree. The script mounts an overlay over the tree, which only the script sees and which
# ends with it. The overlay has the tree's own path, so the build of the tree is used again. Do not edit the tree
# meanwhile. With REELHAUL_MUTANTS=DIR, or where no overlay can be mounted (in most containers), it works on a copy with a
# build of its own; DIR stays for the next run.
# Exits 1 if a mutant survives, if a patch no longer applies or does not build, or if its tests fail without it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
mutants=Tests/mutants

fail() {
  echo "mutants.sh: $*" >&2
  exit 2
}

suites_of() { sed -n 's/^# Suites: //p' "$1"; }
guarantee_of() { sed -n '1s/^# //p' "$1"; }
files_of() { sed -n 's/^+++ b\///p' "$1"; }

arguments=("$@")
list=false
sample=0
names=()
while [ $# -gt 0 ]; do
  case $1 in
    --list) list=true ;;
    --sample)
      sample=${2:-}
      [[ $sample =~ ^[1-9][0-9]*$ ]] || fail "--sample takes a number"
      shift
      ;;
    -*) fail "there is no option $1" ;;
    *) names+=("$1") ;;
  esac
  shift
done

patches=()
for patch in "$mutants"/*.patch; do
  if [ ${#names[@]} -gt 0 ]; then
    wanted=false
    for name in "${names[@]}"; do [[ $(basename "$patch") == *"$name"* ]] && wanted=true; done
    $wanted || continue
  fi
  if [ "$sample" -gt 0 ]; then grep -q '^# Quick$' "$patch" || continue; fi
  patches+=("$patch")
done
[ ${#patches[@]} -gt 0 ] || fail "no patch matches"

if [ "$sample" -gt 0 ] && [ "$sample" -lt ${#patches[@]} ]; then
  commit=$(git rev-parse HEAD 2>/dev/null || echo 0)
  start=$((16#${commit:0:6} % ${#patches[@]}))
  chosen=()
  for ((n = 0; n < sample; n++)); do
    chosen+=("${patches[(start + n * ${#patches[@]} / sample) % ${#patches[@]}]}")
  done
  patches=("${chosen[@]}")
fi

if $list; then
  for patch in "${patches[@]}"; do
    printf '%s\n    %s\n    %s\n' "$(basename "$patch" .patch)" "$(guarantee_of "$patch")" "$(suites_of "$patch")"
  done
  exit
fi

# Mounts the overlay over the tree; what is written goes to memory, and the tree itself is at $space/tree.
mount_overlay() {
  local options=lowerdir=$space/tree,upperdir=$space/upper,workdir=$space/work
  if [ "$space_flags" != --mount ]; then options+=,userxattr; fi
  mount -t tmpfs reelhaul-mutants "$space" && mkdir "$space"/{tree,upper,work} &&
    mount --bind "$root" "$space/tree" && mount -t overlay reelhaul-mutants -o "$options" "$root"
}

# As a user who is root in a namespace alone, only the quick ones: PostgreSQL cannot be started there.
space_flags=${MUTANTS_FLAGS:---mount}
if [ "$(id -u)" -ne 0 ]; then space_flags="--mount --map-root-user"; fi
no_overlay=125
if [ -n "${MUTANTS_SPACE:-}" ]; then
  # This process has mounts of its own.
  space=$MUTANTS_SPACE
  unset MUTANTS_SPACE MUTANTS_FLAGS
  mount_overlay 2>/dev/null || exit "$no_overlay"
  cd "$root"
  copy=$root
  root=$space/tree
  log=$space/log
elif [ -n "${REELHAUL_MUTANTS:-}" ]; then
  copy=$REELHAUL_MUTANTS
  mkdir -p "$copy"
  log=$copy/mutants.log
else
  space=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-mutants.XXXXXX")
  trap 'rmdir "$space"' EXIT
  code=$no_overlay
  # shellcheck disable=SC2086
  if { [ "$(id -u)" -eq 0 ] || [ "$sample" -gt 0 ]; } && unshare $space_flags true 2>/dev/null; then
    code=0
    MUTANTS_SPACE=$space MUTANTS_FLAGS=$space_flags unshare $space_flags "$PWD/deploy/mutants.sh" "${arguments[@]}" || code=$?
  fi
  [ "$code" -eq "$no_overlay" ] || exit "$code"
  trap 'rm -rf "$space"' EXIT
  echo "No overlay can be mounted here: makes a copy, and builds it"
  copy=$space
  log=$copy/mutants.log
fi

# Copies only files that differ, because the compiler compares the times of files, not their bytes.
restore() {
  local file
  for file in "$@"; do
    cmp -s "$root/$file" "$copy/$file" && continue
    mkdir -p "$(dirname "$copy/$file")"
    cp "$root/$file" "$copy/$file"
  done
}

if [ "$copy" != "$PWD" ]; then
  mapfile -d '' -t tracked < <(git ls-files -z --cached --others --exclude-standard)
  present=()
  for file in "${tracked[@]}"; do if [ -f "$file" ]; then present+=("$file"); fi; done
  restore "${present[@]}"
  while IFS= read -r -d '' file; do
    [ -f "$root/$file" ] || rm "$copy/$file"
  done < <(cd "$copy" && find Sources Tests -type f -print0)
fi

build() { (cd "$copy" && swift build --build-tests --explicit-target-dependency-import-check error) >"$log" 2>&1; }

# Runs the tests, for $2 seconds at most. Returns 0 if they pass, 1 if they fail or hang (a mutant may block for ever), and
# 2 if there are none.
run() {
  if (cd "$copy" && timeout --kill-after=10 "${2:-240}" swift test --skip-build --no-parallel --filter "$1") >"$log" 2>&1; then
    if grep -q 'Test run with 0 tests' "$log"; then return 2; fi
    return 0
  fi
  return 1
}

plant() {
  patch -d "$copy" -p1 --fuzz=3 --force --silent --no-backup-if-mismatch --reject-file=- "${@:2}" <"$1" >"$log" 2>&1
}

# Builds once, and runs all tests without a bug: a test that fails now would seem to notice every bug.
echo "Without a bug: builds, and runs ${#patches[@]} suites"
build || { cat "$log"; fail "the working tree does not build"; }
all=$(for patch in "${patches[@]}"; do suites_of "$patch"; done | sort -u | paste -sd'|')
run "$all" $((240 * ${#patches[@]})) || { tail -n 60 "$log"; fail "the tests fail, or there are none, without any bug"; }

# Also those that are not planted now.
bad=()
tests=$(cd "$copy" && swift test --skip-build list 2>"$log")
for patch in "$mutants"/*.patch; do
  name=$(basename "$patch" .patch)
  plant "$patch" --dry-run || bad+=("$name: does not apply")
  grep -qE "$(suites_of "$patch")" <<<"$tests" || bad+=("$name: its suites have no tests")
done
mutated=()
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  suites=$(suites_of "$patch")
  start=$SECONDS
  restore "${mutated[@]}"
  mapfile -t mutated < <(files_of "$patch")
  result=killed
  if [ -z "$suites" ] || [ ${#mutated[@]} -eq 0 ]; then
    result="names no suites or no file"
  elif ! plant "$patch"; then
    result="does not apply"
  elif ! build; then
    result="does not build"
    grep -m3 'error:' "$log" | sed 's/^/    /' || true
  else
    code=0
    run "$suites" || code=$?
    case $code in
      0) result=SURVIVES ;;
      2) result="its suites have no tests" ;;
    esac
  fi
  [ "$result" = killed ] || bad+=("$name: $result")
  printf '%-10s %3d s  %s\n' "$result" $((SECONDS - start)) "$name"
  if [ "$result" = killed ]; then
    grep -m1 -o '✘ Test .* recorded an issue' "$log" | sed 's/ recorded an issue//; s/^✘ /              /' || true
  fi
done
restore "${mutated[@]}"

if [ ${#bad[@]} -gt 0 ]; then
  printf '\nNot noticed, or not planted: %d\n' ${#bad[@]}
  printf '  %s\n' "${bad[@]}"
  exit 1
fi
echo "All ${#patches[@]} are noticed"
