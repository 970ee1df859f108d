import CommandLineKit
import ReelhaulCodec
import TaskStore
import WorkerOptions

extension Output {
  func json(_ use: LimitUse) {
    document { Self.write(use, to: &$0) }
  }

  func json(_ uses: [LimitUse]) {
    documents(uses, Self.write)
  }

  private static func write(_ use: LimitUse, to json: inout JSONWriter) {
    json.object { json in
      json.member("scope", use.scope.rawValue)
      json.member("name", use.name)
      json.member("running", use.running)
      json.member("limit", orNull: use.limit.map(Int64.init))
      json.member("room", orNull: use.room.map(Int64.init))
      json.member("declared", orNull: use.declared.map(Int64.init))
      json.name("weight")
      if let weight = use.weight { json.double(weight) } else { json.null() }
    }
  }
}
