import Glibc
import ReelhaulCodec
import ReelhaulSystem

/// What requests of OTLP say, read with the classes of OpenTelemetry's own Python package.
package enum OTLPReference {
  /// A span, or a data point of a metric.
  package struct Item: Sendable {
    package var service = ""
    package var name = ""
    package var kind = ""
    package var trace = ""
    package var span = ""
    package var parent = ""
    package var state = ""
    package var error = ""
    package var unit = ""
    package var value = ""
    /// When counting began.
    package var start = ""
    /// How many there were up to each bound, and above the last.
    package var buckets = ""
    package var attributes: [String: String] = [:]
  }

  private static let root = #filePath.split(separator: "/").dropLast(4).map { "/\($0)" }.joined()

  /// Fails if one of the requests is not as OTLP wants it. Blocks.
  package static func items(of posts: [HookReceiver.Post]) throws -> [Item] {
    let scratch = try TemporaryDirectory()
    let path = "\(scratch.path)/requests"
    var lines: [UInt8] = []
    for post in posts {
      lines += JSONWriter.write { writer in
        writer.object { writer in
          writer.member("path", post.path)
          writer.name("body")
          writer.raw(post.body)
        }
      }
      lines.append(UInt8(ascii: "\n"))
    }
    let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0, write(file, lines, lines.count) == lines.count, close(file) == 0 else {
      throw SystemError.last("write \(path)")
    }
    let printed = try Peers.run(Peers.python(), ["\(root)/Tests/Reference/otlp.py", path])
    return try printed.split(separator: UInt8(ascii: "\n")).map { line in
      try JSONReader.read(Array(line)) { reader throws(DecodingFailure) in
        var item = Item()
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "service": item.service = try reader.string()
          case "name": item.name = try reader.string()
          case "kind": item.kind = try reader.string()
          case "trace": item.trace = try reader.string()
          case "span": item.span = try reader.string()
          case "parent": item.parent = try reader.string()
          case "state": item.state = try reader.string()
          case "error": item.error = try reader.string()
          case "unit": item.unit = try reader.string()
          case "value": item.value = try reader.string()
          case "start": item.start = try reader.string()
          case "buckets": item.buckets = try reader.string()
          case "attributes":
            try reader.object { reader, name throws(DecodingFailure) in
              item.attributes[name.text] = try reader.string()
            }
          default: try reader.skip()
          }
        }
        return item
      }
    }
  }
}
