import ReelhaulCodec
import TaskCore

/// A task as people and programs see it. Every field is always present, and `null` if it is unknown. Of the URLs'
/// queries only the names are shown, because a signature would be a credential.
package enum TaskDocumentJSON {
  package static func encode(_ document: TaskDocument) -> [UInt8] {
    JSONWriter.write(capacity: 1024) { write(document, to: &$0) }
  }

  package static func decode(_ bytes: [UInt8]) throws(DecodingFailure) -> TaskDocument {
    try JSONReader.read(bytes) { reader throws(DecodingFailure) in try read(from: &reader) }
  }

  /// `more` adds members to the document.
  package static func write(
    _ document: TaskDocument, to json: inout JSONWriter, more: (inout JSONWriter) -> Void = { _ in }
  ) {
    let spec = document.spec
    json.object { json in
      json.member("id", spec.id)
      json.member("kind", spec.kind.rawValue)
      json.member("state", document.state.rawValue)
      json.member("priority", spec.priority)
      json.member("queue", spec.queue)
      json.member("source", URLRedaction.redact(spec.source))
      json.member("destination", orNull: spec.destination.map(URLRedaction.redact))
      json.member("bytesTotal", orNull: document.bytesTotal)
      json.member("bytesDone", document.bytesDone)
      json.member("rate", orNull: document.rate)
      json.member("eta", orNull: document.eta)
      json.member("attempt", document.attempt)
      json.member("maxAttempts", spec.retry.maxAttempts)
      json.member("worker", orNull: document.worker)
      json.member("epoch", document.epoch)
      json.member("generation", document.generation)
      json.member("sequence", document.sequence)
      json.member("createdAt", document.createdAt)
      json.member("startedAt", orNull: document.startedAt)
      json.member("finishedAt", orNull: document.finishedAt)
      json.member("runAt", orNull: document.runAt)
      json.name("digest")
      write(digest: document.sha256, to: &json)
      json.name("output")
      if let output = document.output { json.raw(output) } else { json.null() }
      json.name("error")
      write(error: document.error, to: &json)
      json.member("after", spec.after)
      json.member("labels", spec.labels)
      json.name("parameters")
      if let parameters = spec.parameters { json.raw(parameters) } else { json.null() }
      more(&json)
    }
  }

  private static func write(digest: [UInt8]?, to json: inout JSONWriter) {
    guard let digest else { return json.null() }
    json.object { $0.member("sha256", hex: digest) }
  }

  private static func write(error: TaskFailure?, to json: inout JSONWriter) {
    guard let error else { return json.null() }
    json.object { json in
      json.member("code", error.code.rawValue)
      json.member("message", error.message)
      json.member("retryable", error.isRetryable)
    }
  }
}
