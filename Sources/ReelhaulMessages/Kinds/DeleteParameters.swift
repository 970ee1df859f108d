import ReelhaulCodec
import TaskCore

/// The `parameters` of a delete: `{"recursive": true}`, or nothing.
package struct DeleteParameters: Hashable, Sendable {
  package var isRecursive = false

  package init() {}

  /// The parameters of a delete, checked, also against what it deletes. Errors name the field.
  package init(_ spec: TaskSpec) throws(InvalidTask) {
    if let json = spec.parameters { isRecursive = try Self.isRecursive(json) }
    switch try? ResourceURL(spec.source) {
    case .s3(let object) where object.isFolder && !isRecursive:
      throw InvalidTask("source", "its key ends with \"/\", so all objects below it are deleted: this needs recursive")
    case .s3(let object) where !object.isFolder && isRecursive:
      throw InvalidTask("source", "a recursive delete of s3:// needs a key that ends with \"/\"")
    case .web where isRecursive, .tus where isRecursive:
      throw InvalidTask("parameters.recursive", "only storage:// and s3:// have anything below a URL")
    default: break
    }
  }

  private static func isRecursive(_ json: [UInt8]) throws(InvalidTask) -> Bool {
    do throws(DecodingFailure) {
      return try JSONReader.read(json, refusingUnknownNames: true) { reader throws(DecodingFailure) in
        var isRecursive = false
        try reader.object(known: ["recursive"]) { reader, name throws(DecodingFailure) in
          switch name {
          case "recursive": isRecursive = try reader.bool()
          default: try reader.skip()
          }
        }
        return isRecursive
      }
    } catch {
      throw InvalidTask(error)
    }
  }
}
