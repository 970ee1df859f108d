import ReelhaulCodec
import ReelhaulCurl
import ReelhaulDigest
import ReelhaulMessages
import ReelhaulSystem
import TaskCore

/// What a server says of the bytes that it has stored, and what that proves.
extension PutTarget {
  /// What a server's answer that it has stored a file proves of its bytes; nil if nothing. Throws if they are others.
  func proof(
    _ answer: CurlAnswer, _ upload: UploadOrder, at place: Place, file: String
  ) async throws -> UploadOutput.Verified? {
    let told: (kind: UploadOutput.Verified, fits: Bool)?
    do {
      told = try await comparison(with: answer, upload, at: place, file: file)
    } catch {
      // It is stored, also if the source cannot be read any more.
      if method == .post { return nil }
      throw error
    }
    guard told?.fits == false else { return told?.kind }
    // It is sent again, but for a POST, and where the damaged file would be in the way.
    if method == .put, upload.ifExists == .replace || isPresigned { throw damaged(.retry) }
    guard method == .put, let there = try? await read(place, upload), there.owner != nil else { throw damaged(.fail) }
    // A part of the file is replaced.
    guard there.size == upload.size else { throw damaged(.retry) }
    return .sha256
  }

  /// What a server tells of the bytes that it has stored, and whether they are those of the source; nil if nothing.
  private func comparison(
    with answer: CurlAnswer, _ upload: UploadOrder, at place: Place, file: String
  ) async throws -> (kind: UploadOutput.Verified, fits: Bool)? {
    let head = answer.head
    func expected() async throws -> String {
      let sha256 = if let known = upload.sha256 { known } else { try await sourceDigest(.sha256, upload) }
      return Base64.encode(sha256)
    }
    if let told = head["repr-digest"].flatMap(Self.sha256), Self.isDigest(told, bytes: 32) {
      let fits = try await told == expected()
      if fits || describes(answer, file, from: place, digest: told) { return (.sha256, fits) }
    }
    if let told = head["x-amz-checksum-sha256"], Self.isDigest(told, bytes: 32) {
      return (.sha256, try await told == expected())
    }
    if let told = head["x-amz-checksum-crc32c"], Self.isDigest(told, bytes: 4) {
      var crc: UInt32 = 0
      try await upload.body.source.readAll { crc = crc32c($0, continuing: crc) }
      return (.crc32c, told == S3Checksum.crc32c(crc))
    }
    // Another tag proves nothing: it may be that of an encrypted file.
    guard let told = head["etag"].flatMap(S3ETag.md5) else { return nil }
    return told == Hex.encode(try await sourceDigest(.md5, upload)) ? (.md5, true) : nil
  }

  /// Whether the `Repr-Digest` of an answer is that of the file, and not of what the answer itself says (RFC 9530, 3).
  private func describes(_ answer: CurlAnswer, _ file: String, from place: Place, digest told: String) -> Bool {
    if let content = answer.head["content-location"] {
      guard let base = CurlURL(place.url) else { return false }
      return base.resolving(content)?.text == base.resolving(file)?.text
    }
    // Some servers tell the digest of every answer, also of an empty one.
    return answer.body.isEmpty && answer.head.size ?? 0 == 0 && told != Base64.encode(digest(.sha256, of: []))
  }

  /// The value of `sha-256` in a field such as `Repr-Digest`.
  private static func sha256(_ field: String) -> String? {
    for member in field.split(separator: ",") {
      let text = member.drop { $0 == " " }
      guard text.lowercased().hasPrefix("sha-256=:"), text.hasSuffix(":") else { continue }
      return String(text.dropFirst(9).dropLast())
    }
    return nil
  }

  /// Whether a text may be so many bytes in Base64. Some servers write hexadecimal digits.
  private static func isDigest(_ text: String, bytes: Int) -> Bool {
    let zeros = Base64.encode(repeatElement(0, count: bytes))
    return text.utf8.count == zeros.utf8.count && text.hasSuffix(zeros.drop { $0 != "=" })
  }

  private func damaged(_ class: TaskFailure.Class) -> TaskFailure {
    let isKept = `class` == .fail
    return TaskFailure(
      code: .digestMismatch,
      message: "\(location): the server received other bytes than were sent\(isKept ? ", and has stored them" : "")",
      class: `class`)
  }
}
