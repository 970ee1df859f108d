import ReelhaulCodec
import ReelhaulSystem
import TaskCore

/// A source whose bytes were checked: every read gives those that the check has seen, or fails. Validators alone do not
/// prove it: that of a web server may be a time in seconds and the length.
struct CheckedSource: UploadSource {
  let source: any UploadSource
  let sums: BlockSums

  var identity: UploadIdentity { source.identity }
  var isHeld: Bool { source.isHeld }
  var needsConnections: Bool { source.needsConnections }
  var block: Int64 { sums.block }
  var properties: [HeaderField] { source.properties }
  var copyFields: [HeaderField]? { source.copyFields }

  /// Only whole blocks have checksums.
  func whole(_ range: Range<Int64>) -> Range<Int64> {
    range.lowerBound / block * block..<min(identity.size, (range.upperBound + block - 1) / block * block)
  }

  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> {
    let whole = whole(range)
    let bytes = try await source.read(whole)
    guard sums.match(bytes, from: whole.lowerBound) else { throw UploadSourceChanged() }
    return bytes.dropFirst(Int(range.lowerBound - whole.lowerBound)).prefix(range.count)
  }

  func check() async throws { try await source.check() }
}

/// The CRC32C of each block of a file. The last block may be shorter.
package struct BlockSums: Hashable, Sendable {
  package let block: Int64
  private var sums: [UInt32] = []
  /// How much of the last block is in its checksum.
  private var last: Int64 = 0

  package init(block: Int64) {
    self.block = block
    last = block
  }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if last == block {
        sums.append(0)
        last = 0
      }
      let part = rest.prefix(Int(block - last))
      sums[sums.count - 1] = crc32c(UnsafeRawBufferPointer(rebasing: part), continuing: sums[sums.count - 1])
      last += Int64(part.count)
      rest = rest.dropFirst(part.count)
    }
  }

  /// Whether these are the bytes from `offset`, where a block begins.
  func match(_ bytes: ArraySlice<UInt8>, from offset: Int64) -> Bool {
    var seen = BlockSums(block: block)
    bytes.withUnsafeBytes { seen.append($0) }
    return seen.sums == Array(sums.dropFirst(Int(offset / block)).prefix(seen.sums.count))
  }
}

extension BlockSums {
  /// The checksums as text.
  var text: String {
    Base64URL.encode(sums.flatMap { sum in withUnsafeBytes(of: sum.bigEndian) { Array($0) } })
  }

  /// Reads what ``text`` wrote of a file of `size` bytes; nil if it is something else.
  init?(_ text: String, block: Int64, size: Int64) {
    guard block > 0, let bytes = Base64URL.decode(text), bytes.count.isMultiple(of: 4),
      bytes.count / 4 == size / block + min(1, size % block)
    else { return nil }
    self.init(block: block)
    sums = stride(from: 0, to: bytes.count, by: 4).map { bytes[$0..<$0 + 4].reduce(0) { $0 << 8 | UInt32($1) } }
    if size % block > 0 { last = size % block }
  }
}
