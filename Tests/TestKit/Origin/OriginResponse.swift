/// An answer before it is sent: a head, and a body as steps. Faults change it.
package struct OriginResponse: Sendable {
  /// One step of a connection.
  package enum Step: Sendable {
    case bytes([UInt8])
    case content(OriginContent, Range<Int64>)
    /// Limits the speed from here on.
    case pace(bytesPerSecond: Int)
    /// Sends nothing more until the gate opens or the client leaves.
    case hold(OriginGate)
    /// Installs another version of the requested file.
    case install(OriginFile)
    /// Ends the connection in order, even if the body is not complete.
    case close
    /// Ends the connection with a TCP reset.
    case reset

    /// Bytes of body that the step sends.
    var count: Int64 {
      switch self {
      case .bytes(let bytes): Int64(bytes.count)
      case .content(_, let range): Int64(range.count)
      case .pace, .hold, .install, .close, .reset: 0
      }
    }

    /// The step's first `count` bytes, and the rest.
    func split(at count: Int64) -> (Step, Step) {
      switch self {
      case .bytes(let bytes):
        return (.bytes(Array(bytes[..<Int(count)])), .bytes(Array(bytes[Int(count)...])))
      case .content(let content, let range):
        let middle = range.lowerBound + count
        return (.content(content, range.lowerBound..<middle), .content(content, middle..<range.upperBound))
      case .pace, .hold, .install, .close, .reset: preconditionFailure("a step without bytes")
      }
    }
  }

  package var status: Int
  package var headers: [(name: String, value: String)] = []
  /// Steps before the head.
  package var prelude: [Step] = []
  package var body: [Step]
  package var isChunked = false
  package var version = "1.1"

  package init(status: Int, body: [Step]) {
    self.status = status
    self.body = body
  }

  /// A small complete answer.
  static func text(_ status: Int, _ text: String, type: String = "text/plain") -> OriginResponse {
    var response = OriginResponse(status: status, body: [.bytes(Array(text.utf8))])
    response["Content-Length"] = "\(text.utf8.count)"
    response["Content-Type"] = type
    return response
  }

  /// Setting a field replaces all fields of this name, or removes them.
  package subscript(name: String) -> String? {
    get { headers.first { $0.name.lowercased() == name.lowercased() }?.value }
    set {
      headers.removeAll { $0.name.lowercased() == name.lowercased() }
      if let newValue { headers.append((name, newValue)) }
    }
  }

  var length: Int64 { body.reduce(0) { $0 + $1.count } }

  /// Inserts `step` after `offset` bytes of body, or at the end of the body.
  mutating func insert(_ step: Step, at offset: Int64) {
    var left = offset
    for index in body.indices {
      let count = body[index].count
      if left < count {
        let (head, tail) = body[index].split(at: left)
        body.replaceSubrange(index...index, with: [head, step, tail])
        return
      }
      left -= count
    }
    body.append(step)
  }

  /// Drops the body after `length` bytes, without changing the head.
  mutating func cut(to length: Int64) {
    insert(.close, at: length)
    body.removeSubrange((body.firstIndex { if case .close = $0 { true } else { false } } ?? body.endIndex)...)
  }

  var head: [UInt8] {
    var text = "HTTP/\(version) \(status) \(status < 300 ? "Fine" : "Otherwise")\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if isChunked { text += "Transfer-Encoding: chunked\r\n" }
    return Array((text + "\r\n").utf8)
  }
}
