import ReelhaulCodec
import TaskCore

/// A task as JSON: the `task` of a submit command, and the form in the store. Fields with their default are omitted.
package enum TaskSpecJSON {
  package static func encode(_ spec: TaskSpec) -> [UInt8] {
    JSONWriter.write { write(spec, to: &$0) }
  }

  /// Decodes a whole task: `id`, `kind` and `source` are required. The length is not limited, because a message within
  /// its limit may become longer when the store writes it.
  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> TaskSpec {
    try JSONReader.read(bytes, limit: .max) { reader throws(DecodingFailure) in
      let draft = try TaskDraft(from: &reader)
      guard let id = draft.id else { throw reader.missing("id") }
      guard draft.kind != nil else { throw reader.missing("kind") }
      return try draft.spec { id }
    }
  }

  package static func write(_ spec: TaskSpec, to json: inout JSONWriter) {
    let standard = TaskSpec(id: spec.id, kind: spec.kind, source: spec.source)
    json.object { json in
      json.member("id", spec.id)
      json.member("kind", spec.kind.rawValue)
      json.member("source", spec.source)
      json.member("destination", spec.destination)
      if let parameters = spec.parameters {
        json.name("parameters")
        json.raw(parameters)
      }
      if spec.priority != standard.priority { json.member("priority", spec.priority) }
      if spec.queue != standard.queue { json.member("queue", spec.queue) }
      if !spec.after.isEmpty { json.member("after", spec.after) }
      json.member("notBefore", spec.notBefore)
      if spec.expect != standard.expect { write(spec.expect, to: &json) }
      if spec.ifExists != standard.ifExists { json.member("ifExists", spec.ifExists.rawValue) }
      if !spec.headers.isEmpty { write(spec.headers, to: &json) }
      if spec.retry.maxAttempts != standard.retry.maxAttempts { json.member("maxAttempts", spec.retry.maxAttempts) }
      if !spec.retry.intervals.isEmpty { json.member("retryAfter", spec.retry.intervals) }
      json.member("rate", spec.rate)
      json.member("credential", spec.credential)
      if !spec.labels.isEmpty { json.member("labels", spec.labels) }
      if spec.paused { json.member("paused", true) }
    }
  }

  package static func write(_ expect: Expectation, to json: inout JSONWriter) {
    json.name("expect")
    json.object { json in
      json.member("sha256", hex: expect.sha256)
      json.member("md5", hex: expect.md5)
      json.member("bytes", expect.bytes)
    }
  }

  private static func write(_ headers: [HeaderField], to json: inout JSONWriter) {
    json.name("headers")
    json.object { json in
      for field in headers {
        json.name(field.name)
        json.string(field.value)
      }
    }
  }
}
