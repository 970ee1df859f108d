import ReelhaulCodec
import TaskCore

/// The `parameters` of a delete: `{"recursive": true}`, or nothing.
package struct DeleteParameters: Hashable, Sendable {
  package var isRecursive = false

  package init() {}

  /// The parameters of a delete, checked, also against what it deletes. Errors name the field.
  package init(_ spec: TaskSpec) throws(InvalidTask) {
    do throws(DecodingFailure) { try read(spec) } catch { throw InvalidTask(error) }
    try check(spec)
  }

  /// Those of a task that runs, which may have been submitted by another version.
  package init(stored spec: TaskSpec) throws(TaskFailure) {
    do throws(DecodingFailure) { try read(spec) } catch { throw TaskFailure(error) }
    do throws(InvalidTask) { try check(spec) } catch { throw TaskFailure(error) }
  }

  private func check(_ spec: TaskSpec) throws(InvalidTask) {
    switch try? ResourceURL(spec.source) {
    case .s3(let object) where object.isFolder && !isRecursive:
      throw InvalidTask("source", "its key ends with \"/\", so all objects below it are deleted: this needs recursive")
    case .s3(let object) where !object.isFolder && isRecursive:
      throw InvalidTask("source", "a recursive delete of s3:// needs a key that ends with \"/\"")
    case .web where isRecursive, .tus where isRecursive:
      throw InvalidTask("parameters.recursive", "only storage:// and s3:// have anything below a URL")
    case .s3, .web, .tus:
      guard spec.expect.hasDigest else { break }
      let field = spec.expect.sha256 != nil ? "expect.sha256" : "expect.md5"
      throw InvalidTask(field, "a digest can only be compared below storage://, of another server only the size")
    case .storage, nil: break
    }
  }

  private mutating func read(_ spec: TaskSpec) throws(DecodingFailure) {
    guard let json = spec.parameters else { return }
    isRecursive = try JSONReader.read(json, refusingUnknownNames: true) { reader throws(DecodingFailure) in
      var isRecursive = false
      try reader.object(known: ["recursive"]) { reader, name throws(DecodingFailure) in
        switch name {
        case "recursive": isRecursive = try reader.bool()
        default: try reader.skip()
        }
      }
      return isRecursive
    }
  }
}
