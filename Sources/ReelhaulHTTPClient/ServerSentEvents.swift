import Foundation

/// One event of a stream.
struct ServerSentEvent: Equatable {
  var name = "message"
  var data: String
  /// The last id that the stream had, this event's or an earlier one's.
  var id: String?
}

/// Reads a stream of server-sent events, as the HTML standard defines it, from pieces that may end anywhere.
struct ServerSentEventParser {
  /// A line that is longer, or an event whose data are, is no event of a fleet.
  static let limit = 4 << 20

  struct TooLong: Error {}

  private var line: [UInt8] = []
  private var isAfterReturn = false
  private var isFirstLine = true
  private var name = ""
  private var data: [UInt8] = []
  private var hasData = false
  private var lastID: String?
  /// How long the server wants clients to wait before they return.
  private(set) var retry: Duration?

  init(lastID: String? = nil) { self.lastID = lastID }

  /// The events that end within `bytes`. Throws ``TooLong``.
  mutating func read(_ bytes: Data) throws(TooLong) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    for byte in bytes {
      if byte == UInt8(ascii: "\n"), isAfterReturn {
        isAfterReturn = false
        continue
      }
      isAfterReturn = byte == UInt8(ascii: "\r")
      if isAfterReturn || byte == UInt8(ascii: "\n") {
        if let event = try endLine() { events.append(event) }
      } else {
        guard line.count < Self.limit else { throw TooLong() }
        line.append(byte)
      }
    }
    return events
  }

  private mutating func endLine() throws(TooLong) -> ServerSentEvent? {
    defer { line.removeAll(keepingCapacity: true) }
    if isFirstLine {
      isFirstLine = false
      if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    }
    guard !line.isEmpty else { return endEvent() }
    let colon = line.firstIndex(of: UInt8(ascii: ":"))
    let field = line[..<(colon ?? line.endIndex)]
    var value = colon.map { line[($0 + 1)...] } ?? []
    if value.first == UInt8(ascii: " ") { value.removeFirst() }
    switch String(decoding: field, as: UTF8.self) {
    case "event": name = String(decoding: value, as: UTF8.self)
    case "data":
      guard data.count + value.count < Self.limit else { throw TooLong() }
      if hasData { data.append(UInt8(ascii: "\n")) }
      data += value
      hasData = true
    case "id" where !value.contains(0): lastID = String(decoding: value, as: UTF8.self)
    case "retry": retry = Int(String(decoding: value, as: UTF8.self)).map { .milliseconds($0) } ?? retry
    default: break  // a comment, or what this version does not know
    }
    return nil
  }

  private mutating func endEvent() -> ServerSentEvent? {
    defer { (name, data, hasData) = ("", [], false) }
    guard hasData else { return nil }
    return ServerSentEvent(
      name: name.isEmpty ? "message" : name, data: String(decoding: data, as: UTF8.self), id: lastID)
  }
}
