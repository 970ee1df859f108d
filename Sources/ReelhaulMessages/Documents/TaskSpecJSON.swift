import ReelhaulCodec
import TaskCore

/// A task as JSON: the `task` of a submit command, and what the store keeps. Fields with their default are left out.
package enum TaskSpecJSON {
  package static func encode(_ spec: TaskSpec) -> [UInt8] {
    JSONWriter.write { write(spec, to: &$0) }
  }

  /// Reads a whole task of any length: `id`, `kind` and `source` must be there. What came in a message within its limit
  /// may be longer as the store writes it.
  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> TaskSpec {
    try JSONReader.read(bytes, limit: .max) { reader throws(DecodingFailure) in
      let draft = try TaskDraft(from: &reader)
      guard let id = draft.id else { throw reader.missing("id") }
      guard draft.hasKind else { throw reader.missing("kind") }
      return try draft.spec { id }
    }
  }

  /// Reads a stored task only to show it or to clean up after it. A newer version may have stored values that this one
  /// does not know: these are left out.
  package static func read(_ bytes: [UInt8]) throws(DecodingFailure) -> TaskSpec {
    var known = bytes
    while true {
      do throws(DecodingFailure) {
        return try decode(known)
      } catch {
        guard let name = error.path.first, let rest = try? without(name, in: known), rest.count < known.count else {
          throw error
        }
        known = rest
      }
    }
  }

  private static func without(_ unknown: String, in bytes: [UInt8]) throws(DecodingFailure) -> [UInt8] {
    var members: [(name: String, value: [UInt8])] = []
    try JSONReader.read(bytes, limit: .max) { reader throws(DecodingFailure) in
      try reader.object { reader, name throws(DecodingFailure) in
        let value = try reader.raw()
        if name.text != unknown { members.append((name.text, value)) }
      }
    }
    return JSONWriter.write { json in
      json.object { json in
        for member in members {
          json.name(member.name)
          json.raw(member.value)
        }
      }
    }
  }

  package static func write(_ spec: TaskSpec, to json: inout JSONWriter) {
    json.object { TaskFieldTable.tasks.write(spec, to: &$0) }
  }

  /// Writes an object within a task, such as `expect`, as a member, even if it is empty.
  package static func write(object name: String, of spec: TaskSpec, to json: inout JSONWriter) {
    TaskFieldTable.tasks.write(object: name, of: spec, to: &json)
  }
}
