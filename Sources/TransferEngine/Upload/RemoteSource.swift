import ReelhaulCurl
import ReelhaulDigest
import ReelhaulSystem
import TaskCore

/// A file of an http(s) server, or an object of a store that speaks S3, of which every read asks for its range. A file that
/// the server does not give in ranges, or without a validator, is held in memory if it is short.
final class RemoteSource: OpenedSource {
  let identity: UploadIdentity
  private let server: SourceServer
  private let version: SourceIdentity
  /// All bytes, if they are held.
  private let held: [UInt8]?
  /// Lets them be held as long as the source is used.
  private let portion: HeldBytes.Portion?
  let properties: [HeaderField]

  /// The longest file that is held.
  static let longestHeld: Int64 = 64 << 20
  /// The first request asks for so many bytes: a file that is not longer needs no other.
  private static let firstRange: Int64 = 64 << 10

  private init(
    _ server: SourceServer, _ version: SourceIdentity, size: Int64, held: [UInt8]?, portion: HeldBytes.Portion? = nil
  ) {
    self.server = server
    self.version = version
    self.held = held
    self.portion = portion
    properties = server.s3 == nil ? [] : Self.properties(server.head)
    // Bytes that are held are their own validator. A weak one proves nothing to the next run.
    var name = [version.versionID, version.etag, version.lastModified].map { $0 ?? "" }.joined(separator: "|")
    if !version.isStrong { name += "|\(UInt64.random(in: 0...UInt64.max))" }
    identity = UploadIdentity(
      size: size, version: held.map { "sha256 \(Base64.encode(digest(.sha256, of: $0)))" } ?? name)
  }

  /// - Parameters:
  ///   - s3: Signs the requests, if `url` is that of an object.
  ///   - fields: The task's header fields and those of its credential. They go only to the server of `url`.
  ///   - holder: In whose name the bytes are held.
  static func open(
    _ url: CurlURL, s3: S3Object? = nil, fields: [HeaderField], lane: HTTPLane, holder: HeldBytes.Holder
  ) async throws -> RemoteSource {
    let server = SourceServer(url, s3: s3, fields: fields, lane: lane, holder: holder)
    var answer = try await server.get(.first(count: firstRange))
    if case .part(let bytes, let version) = answer, let size = version.size {
      if Int64(bytes.count) == size { return RemoteSource(server, version, size: size, held: bytes) }
      if version.hasValidator { return RemoteSource(server, version, size: size, held: nil) }
    }
    if case .whole = answer {} else { answer = try await server.get(.whole) }
    guard case .whole(let bytes, let version, let portion) = answer else {
      throw TaskFailure.badResponse("the server does not send the whole file", url: url.text)
    }
    return RemoteSource(server, version, size: Int64(bytes.count), held: bytes, portion: portion)
  }

  var isHeld: Bool { held != nil }
  var isStrong: Bool { isHeld || version.isStrong }
  var needsConnections: Bool { !isHeld }

  func read(_ range: Range<Int64>) async throws -> ArraySlice<UInt8> {
    if let held { return held[Int(range.lowerBound)..<Int(range.upperBound)] }
    var (bytes, rest): ([UInt8], Range<Int64>) = ([], range)
    // Servers may send less than was asked for.
    while !rest.isEmpty {
      guard case .part(let part, _) = try await server.get(.part(rest, of: version)) else {
        throw UploadSourceChanged()
      }
      if rest == range, part.count == range.count { return part[...] }
      bytes.reserveCapacity(range.count)
      bytes += part
      rest = rest.lowerBound + Int64(part.count)..<range.upperBound
    }
    return bytes[...]
  }

  private static func properties(_ head: CurlHead) -> [HeaderField] {
    var fields: [HeaderField] = []
    for field in head.fields {
      let isMetadata = field.name.hasPrefix("x-amz-meta-") && !field.name.hasPrefix("x-amz-meta-reelhaul-")
      guard isMetadata || contentFields.contains(field.name) else { continue }
      var value = field.value
      if field.name == "content-encoding" {
        // Some stores keep this word, which is of a request's body.
        let codings = value.split(separator: ",").map { $0.drop { $0 == " " } }
        value = codings.filter { $0.lowercased() != "aws-chunked" }.joined(separator: ",")
      }
      // Each store makes something else of other characters.
      guard !value.isEmpty, value.utf8.allSatisfy({ 0x20..<0x7F ~= $0 }) else { continue }
      fields.append(HeaderField(name: field.name, value: value))
    }
    return fields
  }

  private static let contentFields: Set<String> = [
    "content-type", "content-encoding", "content-language", "content-disposition", "cache-control",
  ]

  var copyFields: [HeaderField]? {
    guard held == nil, let s3 = server.s3, let etag = version.etag, !version.etagIsWeak else { return nil }
    return [
      HeaderField(name: "x-amz-copy-source", value: s3.copySource),
      HeaderField(name: "x-amz-copy-source-if-match", value: etag),
    ]
  }

  func check() async throws {
    if held == nil { _ = try await read(0..<1) }
  }

  func mismatch(
    _ expect: Expectation, seeing see: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    while goesOn: @escaping @Sendable (_ offset: Int64) -> Bool
  ) async throws -> String? {
    if let difference = identity.mismatch(expect) { return difference }
    guard expect.hasDigest || !isStrong else { return nil }
    var sha256 = DigestState(.sha256)
    var md5 = DigestState(.md5)
    var offset: Int64 = 0
    while offset < identity.size {
      // The next run would begin at the first byte.
      let range = offset..<min(identity.size, offset + 4 << 20)
      let bytes = try await server.loop.patiently(while: { goesOn(range.lowerBound) }, { try await read(range) })
      bytes.withUnsafeBytes {
        sha256.update($0)
        if expect.md5 != nil { md5.update($0) }
        see($0)
      }
      offset = range.upperBound
      guard goesOn(offset) else { throw CancellationError() }
    }
    let digests = FileDigests(sha256: sha256.finish(), md5: expect.md5 == nil ? nil : md5.finish())
    return DigestMismatch(expect, digests)?.description
  }
}
