import ReelhaulCodec
import ReelhaulDigest

/// Tags of the blocks of a file, under a key that only workers know: not even who controls the source can find other bytes
/// for them. The last block may be shorter.
package struct BlockSums: Hashable, Sendable {
  package let block: Int64
  let key: [UInt8]
  fileprivate(set) var sums: [UInt64] = []

  package init(block: Int64, key: [UInt8] = (0..<KeyedTag.keyLength).map { _ in .random(in: 0...255) }) {
    self.block = block
    self.key = key
  }

  /// Whether these are the bytes from `offset`, where a block begins, to the end of a block.
  func match(_ bytes: ArraySlice<UInt8>, from offset: Int64) -> Bool {
    let first = Int(offset / block)
    let seen = BlockSummer(BlockSums(block: block, key: key), first: first)
    bytes.withUnsafeBytes { seen.append($0) }
    let found = seen.finish().sums
    return found == Array(sums.dropFirst(first).prefix(found.count))
  }
}

/// Computes the tags of blocks from their bytes in order.
final class BlockSummer {
  private var sums: BlockSums
  private let tag: KeyedTag
  private let first: Int
  /// How much of a block there is that has no tag yet.
  private var open: Int64 = 0

  /// `first` is the number of the block with which the bytes begin.
  init(_ sums: BlockSums, first: Int = 0) {
    self.sums = sums
    self.first = first
    tag = KeyedTag(key: sums.key)
  }

  func append(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes[...]
    while !rest.isEmpty {
      if open == 0 { tag.begin(first + sums.sums.count) }
      let part = rest.prefix(Int(sums.block - open))
      tag.update(UnsafeRawBufferPointer(rebasing: part))
      open += Int64(part.count)
      if open == sums.block { close() }
      rest = rest.dropFirst(part.count)
    }
  }

  /// The tags of all blocks. Nothing may be appended after that.
  func finish() -> BlockSums {
    if open > 0 { close() }
    return sums
  }

  private func close() {
    sums.sums.append(tag.finish())
    open = 0
  }
}

extension BlockSums {
  /// Key and tags as text.
  var text: String {
    Base64URL.encode(key + sums.flatMap { sum in withUnsafeBytes(of: sum.bigEndian) { Array($0) } })
  }

  /// Reads what ``text`` wrote of a file of `size` bytes; nil if it is something else, such as the checksums without a key
  /// of earlier versions.
  init?(_ text: String, block: Int64, size: Int64) {
    guard block > 0, let bytes = Base64URL.decode(text), bytes.count >= KeyedTag.keyLength else { return nil }
    let tags = bytes.dropFirst(KeyedTag.keyLength)
    guard tags.count.isMultiple(of: 8), tags.count / 8 == size / block + min(1, size % block) else { return nil }
    self.init(block: block, key: Array(bytes.prefix(KeyedTag.keyLength)))
    sums = stride(from: tags.startIndex, to: tags.endIndex, by: 8).map { start in
      tags[start..<start + 8].reduce(0) { $0 << 8 | UInt64($1) }
    }
  }
}
