import ReelhaulCodec
import TaskCore

/// A worker as people and programs see it.
package enum WorkerDocumentJSON {
  package static func write(_ worker: WorkerDocument, to json: inout JSONWriter) {
    json.object { json in
      json.member("id", worker.id)
      json.member("host", worker.host)
      json.member("pid", Int(worker.pid))
      json.member("startedAt", worker.startedAt)
      json.member("leaseUntil", worker.leaseUntil)
      json.name("leaseAgeSeconds")
      // Thousandths: more digits say nothing, and make every answer another one.
      let (seconds, attoseconds) = worker.leaseAge.components
      json.double(Double(max(0, seconds * 1000 + attoseconds / 1_000_000_000_000_000)) / 1000)
      json.member("state", worker.state)
      json.member("version", orNull: worker.version)
      json.member("running", worker.running)
      json.name("kinds")
      json.array { json in
        for kind in worker.kinds.map(\.rawValue).sorted() { json.string(kind) }
      }
      json.member("volumes", worker.volumes.mapValues(\.description))
      json.member("labels", worker.labels)
      json.member("bytesPerSecond", worker.bytesPerSecond)
    }
  }
}
