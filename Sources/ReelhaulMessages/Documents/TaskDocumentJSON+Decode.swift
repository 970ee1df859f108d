import ReelhaulCodec
import TaskCore

extension TaskDocumentJSON {
  /// Decodes a document. Settings that a document does not contain (headers, credential, limits …) get their defaults.
  package static func read(from reader: inout JSONReader) throws(DecodingFailure) -> TaskDocument {
    var spec = TaskSpec(id: UniqueID(high: 0, low: 0), kind: .download, source: "")
    var document = TaskDocument(spec: spec, state: .queued, createdAt: Timestamp(microseconds: 0))
    var found: (id: Bool, state: Bool) = (false, false)
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "id":
        spec.id = try reader.uuid()
        found.id = true
      case "kind": spec.kind = TaskKind(rawValue: try reader.string(limit: 64))
      case "state":
        document.state = try reader.choice()
        found.state = true
      case "priority": spec.priority = try reader.integer()
      case "queue": spec.queue = try reader.string()
      case "source": spec.source = try reader.string()
      case "destination": spec.destination = try reader.string()
      case "bytesTotal": document.bytesTotal = try reader.integer()
      case "bytesDone": document.bytesDone = try reader.integer()
      case "rate": document.rate = try reader.integer()
      case "attempt": document.attempt = try reader.integer()
      case "maxAttempts": spec.retry.maxAttempts = try reader.integer()
      case "worker": document.worker = try reader.uuid()
      case "epoch": document.epoch = try reader.integer()
      case "generation": document.generation = try reader.integer()
      case "sequence": document.sequence = try reader.integer()
      case "createdAt": document.createdAt = try reader.timestamp()
      case "startedAt": document.startedAt = try reader.timestamp()
      case "finishedAt": document.finishedAt = try reader.timestamp()
      case "runAt": document.runAt = try reader.timestamp()
      case "digest": document.sha256 = try readDigest(from: &reader)
      case "output": document.output = try reader.raw()
      case "error": document.error = try readError(from: &reader)
      case "after": spec.after = try reader.uuids()
      case "labels": spec.labels = try reader.strings()
      case "parameters": spec.parameters = try reader.raw()
      default: try reader.skip()
      }
    }
    guard found.id else { throw reader.missing("id") }
    guard found.state else { throw reader.missing("state") }
    document.spec = spec
    return document
  }

  private static func readDigest(from reader: inout JSONReader) throws(DecodingFailure) -> [UInt8]? {
    var digest: [UInt8]?
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "sha256": digest = try reader.digest(count: 32)
      default: try reader.skip()
      }
    }
    return digest
  }

  private static func readError(from reader: inout JSONReader) throws(DecodingFailure) -> TaskFailure {
    var failure = TaskFailure(code: .init(rawValue: ""), message: "", class: .fail)
    try reader.object { reader, name throws(DecodingFailure) in
      switch name {
      case "code": failure.code = .init(rawValue: try reader.string())
      case "message": failure.message = try reader.string()
      case "retryable": failure.class = try reader.bool() ? .retry : .fail
      default: try reader.skip()
      }
    }
    return failure
  }
}
