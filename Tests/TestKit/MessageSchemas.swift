import Glibc
import ReelhaulCodec
import ReelhaulSystem

/// The JSON Schemas of docs/schemas, checked by a validator of others.
package enum MessageSchemas {
  private static let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()

  package static var directory: String { "\(root)/docs/schemas" }

  /// For each value what is wrong with it; nil if it fits the schema of that name. Blocks.
  package static func problems(_ values: [(schema: String, json: [UInt8])]) throws -> [String?] {
    let scratch = try TemporaryDirectory()
    let path = "\(scratch.path)/values"
    var lines: [UInt8] = []
    for (schema, json) in values {
      lines += JSONWriter.write { writer in
        writer.object { writer in
          writer.member("schema", schema)
          writer.name("value")
          writer.raw(json)
        }
      }
      lines.append(UInt8(ascii: "\n"))
    }
    let file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    guard file >= 0, write(file, lines, lines.count) == lines.count, close(file) == 0 else {
      throw SystemError.last("write \(path)")
    }
    let printed = try Peers.run(Peers.python(), ["\(root)/Tests/Reference/schemas.py", directory, path])
    let verdicts = String(decoding: printed, as: UTF8.self).split(separator: "\n").map { $0 == "ok" ? nil : String($0) }
    guard verdicts.count == values.count else { throw SystemError(errno: EPROTO, operation: "check schemas") }
    return verdicts
  }
}
