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
      json.member("state", worker.isLive ? "live" : "expired")
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
