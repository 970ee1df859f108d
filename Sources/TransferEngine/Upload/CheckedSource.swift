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

  /// Only whole blocks have tags.
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
