import ReelhaulCodec
import TaskCore
import TaskStore

extension LimitUse {
  package func write(to json: inout JSONWriter) {
    json.object { json in
      json.member("scope", scope.rawValue)
      json.member("name", name)
      json.member("running", running)
      json.member("limit", orNull: limit.map(Int64.init))
      json.member("room", orNull: room.map(Int64.init))
      json.member("declared", orNull: declared.map(Int64.init))
      json.name("weight")
      if let weight { json.double(weight) } else { json.null() }
      json.member("learned", orNull: learned.map(Int64.init))
      json.name("outage")
      guard let outage else { return json.null() }
      json.object { json in
        json.member("server", outage.server)
        json.member("since", outage.since.description)
        json.member("probeAt", outage.probeAt.description)
        json.member("code", outage.code.rawValue)
        json.member("message", outage.message)
      }
    }
  }
}
