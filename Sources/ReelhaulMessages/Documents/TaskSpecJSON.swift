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

  package static func write(_ spec: TaskSpec, to json: inout JSONWriter) {
    json.object { TaskFieldTable.tasks.write(spec, to: &$0) }
  }

  /// Writes an object within a task, such as `expect`, as a member, even if it is empty.
  package static func write(object name: String, of spec: TaskSpec, to json: inout JSONWriter) {
    TaskFieldTable.tasks.write(object: name, of: spec, to: &json)
  }
}
