#!/usr/bin/env bash
# Checks that the products take no well-known name: a file that imports all of them compiles beside modules with the types
# of swift-nio, swift-system and swift-log, for which stand-ins are made here, and beside types of its own with such names.
# test-example.sh calls it after the main build; it takes some seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=deploy/install.sh
. deploy/install.sh

bin=$(swift build --show-bin-path)
[ -e "$bin/Modules/ReelhaulTestKit.swiftmodule" ] || die "build the main package first: swift build --build-tests"
directory=$(mktemp -d "${TMPDIR:-/tmp}/reelhaul-names.XXXXXX")
trap 'rm -rf "$directory"' EXIT

# module NAME TYPE...: makes a module with public types of these names.
module() {
  local name=$1 type
  shift
  for type in "$@"; do echo "public struct $type { public init() {} }"; done >"$directory/$name.swift"
  swiftc -emit-module -parse-as-library -module-name "$name" -o "$directory/$name.swiftmodule" "$directory/$name.swift"
}

nio=(ByteBuffer Channel ChannelHandler EventLoop EventLoopGroup EventLoopFuture NIOFileHandle SocketAddress TimeAmount
  Scheduled IOData)
system=(FileDescriptor FilePath FilePermissions Errno)
logging=(Logger LogHandler)
module NIOCore "${nio[@]}"
module SystemPackage "${system[@]}"
module System "${system[@]}"
module Logging "${logging[@]}"

imports() { printf 'import %s\n' Foundation ReelhaulTasks ReelhaulClient ReelhaulHTTPClient ReelhaulWorker ReelhaulTestKit "$@"; }
uses() { printf 'let _ = %s()\n' "$@"; }
{
  imports NIOCore System Logging
  echo 'func use() {'
  uses "${nio[@]}" "${system[@]}" "${logging[@]}"
  echo '}'
} >"$directory/imported.swift"
sed 's/^import System$/import SystemPackage/' "$directory/imported.swift" >"$directory/package.swift"
{
  imports
  printf 'struct %s {}\n' "${nio[@]}" "${system[@]}" "${logging[@]}" Thread Lock Clocks Volume Storage Worker Runner Lease \
    Claim Checkpoint Command Signal Service Download
  cat <<'SWIFT'
struct Job: TaskHandler {
  struct Parameters: Codable, Sendable { var path: String }
  struct Checkpoint: Codable, Sendable { var step: Int }
  static let kind = "job"
  func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> NoOutput {
    let logger = Logger(), file = FileDescriptor(), loop = EventLoop()
    context.logger.info("\(logger) \(file) \(loop)")
    try await context.checkpoint(Checkpoint(step: 1))
    throw TaskError.permanent("no")
  }
}
SWIFT
} >"$directory/own.swift"

maps=()
for map in Sources/CReelhaul*/module.modulemap "$bin"/CReelhaul*.build/module.modulemap; do
  maps+=(-Xcc "-fmodule-map-file=$map")
done
for map in Sources/CReelhaul*/include; do maps+=(-Xcc -I -Xcc "$map"); done
read -ra includes < <(pkg-config --cflags-only-I libuv libcurl rdkafka libpq libcrypto)
for include in "${includes[@]}"; do maps+=(-Xcc "$include"); done

say "Names: the products beside swift-nio, swift-system and swift-log"
for file in imported package own; do
  swiftc -typecheck -parse-as-library -swift-version 6 -module-name Names -I "$bin/Modules" -I "$directory" "${maps[@]}" \
    "$directory/$file.swift"
done
