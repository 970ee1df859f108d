import TaskCore

/// The bytes that are uploaded. They are one version of a file: every read fails once it is another one.
package protocol UploadSource: Sendable {
  var identity: UploadIdentity { get }
  /// Whether all its bytes are in memory, and counted: then a part needs no more of it.
  var isHeld: Bool { get }
  /// Whether its reads are requests to a server.
  var needsConnections: Bool { get }
  /// The bytes that are best read at once: reads begin and end where such blocks do.
  var block: Int64 { get }
  /// All that is read for these bytes: more, where only whole blocks can be checked.
  func whole(_ range: Range<Int64>) -> Range<Int64>
  /// What an object of S3 has beside its bytes, and what its copy gets: what its content is, and metadata of users.
  var properties: [HeaderField] { get }
  /// The fields with which a store is asked to copy this very version by itself; nil where it cannot be asked.
  var copyFields: [HeaderField]? { get }

  /// Exactly these bytes. Throws ``UploadSourceChanged`` if the source is not the same any more.
  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8>

  /// Throws ``UploadSourceChanged`` if the source is not the same any more.
  func check() async throws
}

/// A source as it is opened, of which nothing is checked yet.
protocol OpenedSource: UploadSource {
  /// Whether its identity tells all its versions apart. Otherwise two reads may give bytes of two versions.
  var isStrong: Bool { get }

  /// The first difference from what is expected, for people; nil if there is none. Reads the whole source if a digest is
  /// expected or if it is not strong, lets `see` have all bytes in their order, and calls `goesOn` with every offset that
  /// it reaches: false ends it.
  func mismatch(
    _ expect: Expectation, seeing see: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    while goesOn: @escaping @Sendable (_ offset: Int64) -> Bool
  ) async throws -> String?
}

extension UploadSource {
  package var isHeld: Bool { false }
  package var needsConnections: Bool { false }
  package var block: Int64 { 1 << 20 }
  package func whole(_ range: Range<Int64>) -> Range<Int64> { range }
  package var properties: [HeaderField] { [] }
  package var copyFields: [HeaderField]? { nil }

  /// What is read at once of `range`, from `offset` on.
  func block(at offset: Int64, of range: Range<Int64>) -> Range<Int64> {
    offset..<offset + min(range.upperBound - offset, block - offset % block)
  }

  /// At most so many bytes of `range`, from `offset` on. They end where a block does that would be read for its beginning
  /// alone.
  func piece(at offset: Int64, of range: Range<Int64>, most: Int64) -> Range<Int64> {
    let end = offset + min(range.upperBound - offset, most)
    let edge = end / block * block
    return offset..<(edge > offset && whole(offset..<end).upperBound > end ? edge : end)
  }

  /// Reads all of it, or its first bytes, block by block.
  func readAll(first count: Int64? = nil, _ body: (UnsafeRawBufferPointer) -> Void) async throws {
    var offset: Int64 = 0
    let size = count ?? identity.size
    while offset < size {
      try Task.checkCancellation()
      let next = block(at: offset, of: 0..<size)
      try await read(next).withUnsafeBytes { body($0) }
      offset = next.upperBound
    }
  }
}

/// Identifies a version of a source.
package struct UploadIdentity: Hashable, Sendable {
  package var size: Int64
  /// What tells it from other versions: of a file its inode and times, of a URL its validator.
  package var version: String
}

/// The source was changed while it was uploaded.
package struct UploadSourceChanged: Error, Hashable, Sendable {}

extension UploadIdentity {
  func mismatch(_ expect: Expectation) -> String? {
    guard let bytes = expect.bytes, bytes != size else { return nil }
    return "it has \(size) bytes, but \(bytes) were expected"
  }
}
