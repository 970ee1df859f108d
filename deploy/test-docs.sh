#!/usr/bin/env bash
# Compiles every Swift block of the documentation of ReelhaulHTTPClient against the module, and lets DocC check its links;
# and looks whether the files exist that the other documents name, and whether docs/operations.md has every error code.
# test-example.sh calls it after the main build; it takes some seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

catalog=Sources/ReelhaulHTTPClient/ReelhaulHTTPClient.docc
bin=$(swift build --show-bin-path)
[ -e "$bin/Modules/ReelhaulHTTPClient.swiftmodule" ] || die "build the main package first: swift build"
directory=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-docs.XXXXXX")
trap 'rm -rf "$directory"' EXIT

# Each block is the body of a function, which has what the text before it has introduced.
awk '
  BEGIN { print "import Foundation\nimport ReelhaulHTTPClient\n" }
  /^```swift$/ { n += 1; inside = 1; printf "func block%d(fleet: FleetClient, id: UUID) async throws {\n", n; next }
  /^```$/ && inside { inside = 0; print "}\n"; next }
  inside { print "  " $0 }
  END { if (!n) exit 1 }
' "$catalog"/*.md >"$directory/blocks.swift"
swiftc -typecheck -swift-version 6 -I "$bin/Modules" "$directory/blocks.swift"

swift-symbolgraph-extract -module-name ReelhaulHTTPClient -I "$bin/Modules" -output-dir "$directory" \
  -target "$(swiftc -print-target-info | sed -nE 's/.*"triple": "([^"]*)".*/\1/p' | head -n 1)"
docc convert "$catalog" --additional-symbol-graph-dir "$directory" --output-path "$directory/archive" \
  --fallback-display-name ReelhaulHTTPClient --fallback-bundle-identifier reelhaul --warnings-as-errors

# Those in backticks may begin in any folder. A new file is one that the reader shall make.
# shellcheck disable=SC2016
stale=$(
  grep -vh '\*\*A new file' README.md docs/*.md | grep -oE '`[A-Za-z0-9_+/-]+/[A-Za-z0-9_+-]+\.(swift|sql)`' | tr -d '`' | sort -u |
    while read -r file; do find Sources Tests Examples -path "*/${file#Sources/}" | grep -q . || echo "$file"; done
  for document in README.md docs/*.md; do
    grep -oE '\]\([^)#: ]+' "$document" | cut -c3- | grep -v '^http' |
      while read -r file; do [ -e "$(dirname "$document")/$file" ] || echo "$document: $file"; done || true # without links
  done
)
[ -z "$stale" ] || die "the documents name what is not there: $stale"

# The words of errors, but for those that no task has.
untold=$(
  {
    grep -hE '^ *((public|package) static let|case) [A-Za-z]+ = ' Sources/TaskCore/Failure/TaskFailure+Code.swift \
      Sources/ReelhaulCurl/CurlError.swift Sources/ReelhaulMessages/Commands/Rejection.swift
    grep -rhoE 'code: "[a-z_]+"' Sources/ReelhaulWorker
  } |
    grep -oE '"[a-z_]+"' | tr -d '"' | grep -vxE 'canceled|aborted' | sort -u |
    while read -r code; do grep -q "^|.*\`$code\`.*|.*|" docs/operations.md || echo "$code"; done
)
[ -z "$untold" ] || die "docs/operations.md lacks error codes: $untold"
say "Docs: the blocks compile, the links lead somewhere, every error code has its line"
