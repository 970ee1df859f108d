/// Builds a ``CurlHead`` from the header lines of libcurl. It is bounded and keeps only the last response. Pure.
///
/// Lines that libcurl might read differently are refused, because the reading decides where a body ends.
struct HeadCollector {
  enum Progress: Equatable {
    case more
    /// The head of the final response. Trailers after it are counted and ignored.
    case complete(CurlHead)
    /// More than ``maximumFields`` or ``maximumBytes``, including trailers, because libcurl keeps them all in memory.
    case tooLarge
    /// A status line is missing, a line continues the line before (folding), or a transfer coding appears in HTTP/2.
    case malformed
  }

  static let maximumFields = 128
  static let maximumBytes = 64 * 1024

  private var head: CurlHead?
  private var isHTTP2 = false
  private var bytes = 0
  private var trailers = 0
  private(set) var isComplete = false

  /// Adds one line, including its line end.
  mutating func add(line: UnsafeRawBufferPointer) -> Progress {
    bytes += line.count
    guard bytes <= Self.maximumBytes else { return .tooLarge }
    guard !isComplete else {
      trailers += 1
      return trailers <= Self.maximumFields ? .more : .tooLarge
    }
    guard let first = line.first, first != UInt8(ascii: " "), first != UInt8(ascii: "\t") else { return .malformed }
    let text = Self.trim(line[...])
    if text.isEmpty { return end() }
    if text.starts(with: "HTTP/".utf8) {
      guard head == nil else { return .malformed }
      guard let status = Self.status(of: text) else { return .malformed }
      head = CurlHead(status: status)
      isHTTP2 = text.starts(with: "HTTP/2".utf8)
      return .more
    }
    guard head != nil else { return .malformed }
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return .more }
    let name = Self.lowercased(text[..<colon])
    let value = Self.trim(text[text.index(after: colon)...])
    let field = CurlHead.Field(
      name: name, value: name == "location" ? Self.url(value) : String(decoding: value, as: UTF8.self))
    if isHTTP2, field.name == "transfer-encoding" { return .malformed }
    head?.fields.append(field)
    return (head?.fields.count ?? 0) <= Self.maximumFields ? .more : .tooLarge
  }

  /// The empty line, which ends an informational head or the final head. Bytes after a 101 belong to another protocol.
  private mutating func end() -> Progress {
    guard let head else { return .malformed }
    guard head.status >= 200 || head.status == 101 else {
      self.head = nil
      return .more
    }
    isComplete = true
    return .complete(head)
  }

  /// The code in `HTTP/1.1 206 Partial Content` and `HTTP/2 206`.
  private static func status(of line: Slice<UnsafeRawBufferPointer>) -> Int? {
    guard let space = line.firstIndex(of: UInt8(ascii: " ")) else { return nil }
    let digits = line[line.index(after: space)...].prefix { $0 != UInt8(ascii: " ") }
    guard digits.count == 3, let status = Int(String(decoding: digits, as: UTF8.self)), status >= 100 else {
      return nil
    }
    return status
  }

  /// Percent-encodes bytes that are not UTF-8, because only the server knows what the bytes of a URL mean.
  private static func url(_ value: Slice<UnsafeRawBufferPointer>) -> String {
    String(validating: value, as: UTF8.self)
      ?? value.map { $0 < 0x80 ? String(UnicodeScalar($0)) : "%" + String($0, radix: 16) }.joined()
  }

  private static func trim(_ text: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
    func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D || byte == 0x0A }
    var text = text
    while let first = text.first, isSpace(first) { text.removeFirst() }
    while let last = text.last, isSpace(last) { text.removeLast() }
    return text
  }

  private static func lowercased(_ name: Slice<UnsafeRawBufferPointer>) -> String {
    String(unsafeUninitializedCapacity: name.count) { buffer in
      for (index, byte) in name.enumerated() {
        let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
        // Names are ASCII tokens. Other bytes are replaced, so that the string stays well-formed.
        buffer[index] = isUpper ? byte | 0x20 : (byte < 0x80 ? byte : UInt8(ascii: "?"))
      }
      return name.count
    }
  }
}
