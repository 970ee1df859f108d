import ReelhaulCodec
import ReelhaulMessages
import TaskCore

extension OperationFilter {
  /// The most values of one field.
  private static let most = 1000

  /// Writes the fields that are given, by their names in the HTTP API. `order` is for the store alone.
  package func write(to json: inout JSONWriter, order: TaskOrder = .newestFirst) {
    json.object { json in
      if order == .oldestFirst { json.member("sort", order.rawValue) }
      if !states.isEmpty { json.member("state", states.map(\.rawValue)) }
      if !queues.isEmpty { json.member("queue", queues) }
      if !kinds.isEmpty { json.member("kind", kinds.map(\.rawValue)) }
      if !hosts.isEmpty { json.member("host", hosts) }
      if !codes.isEmpty { json.member("code", codes) }
      if !labels.isEmpty { json.member("label", labels) }
      json.member("text", text)
      json.member("after", after)
      json.member("before", before)
    }
  }

  package init(from reader: inout JSONReader) throws(DecodingFailure) {
    var order: TaskOrder?
    try self.init(from: &reader, order: &order)
  }

  /// `order`: nil if the filter is to have none.
  package init(from reader: inout JSONReader, order: inout TaskOrder?) throws(DecodingFailure) {
    self.init()
    var filter = OperationFilter()
    var its = order
    let known = ["state", "queue", "kind", "host", "code", "label", "text", "after", "before"]
    try reader.object(known: its == nil ? known : known + ["sort"]) { reader, name throws(DecodingFailure) in
      switch name {
      case "sort" where its != nil: its = try reader.choice()
      case "state": filter.states = try Self.list(&reader) { reader throws(DecodingFailure) in try reader.choice() }
      case "queue": filter.queues = try Self.list(&reader, Self.string)
      case "kind": filter.kinds = try Self.list(&reader, Self.string).map(TaskKind.init(rawValue:))
      case "host": filter.hosts = try Self.list(&reader, Self.string).map { $0.lowercased() }
      case "code": filter.codes = try Self.list(&reader, Self.string)
      case "label": filter.labels = try Self.list(&reader, Self.string)
      case "text": filter.text = try reader.string(limit: 1000)
      case "after": filter.after = try reader.timestamp()
      case "before": filter.before = try reader.timestamp()
      default: try reader.skip()
      }
    }
    (self, order) = (filter, its)
  }

  private static func string(_ reader: inout JSONReader) throws(DecodingFailure) -> String {
    try reader.string(limit: 2000)
  }

  private static func list<Element>(
    _ reader: inout JSONReader, _ element: (inout JSONReader) throws(DecodingFailure) -> Element
  ) throws(DecodingFailure) -> [Element] {
    var list: [Element] = []
    try reader.array { reader, _ throws(DecodingFailure) in
      guard list.count < most else { throw reader.invalid("there are more than \(most) values") }
      list.append(try element(&reader))
    }
    return list
  }
}

extension TaskOperation {
  /// As programs see it. `withIDs`: whether with the ids that it was given, which may be many.
  package func write(to json: inout JSONWriter, withIDs: Bool = false) {
    json.object { json in
      json.member("id", id)
      json.member("action", action.name)
      switch action {
      case .prioritize(let priority): json.member("priority", priority)
      case .remove(let files): json.member("files", files)
      default: break
      }
      switch selection {
      case .filter(let filter):
        json.name("filter")
        filter.write(to: &json)
      case .ids(let ids):
        json.member("ids", idCount)
        if withIDs { json.member("taskIds", ids) }
      }
      json.member("actor", orNull: actor)
      json.member("state", state.rawValue)
      if let waitsFor {
        json.name("waitsFor")
        json.object { json in
          json.member("id", waitsFor.id)
          json.member("action", waitsFor.action.name)
        }
      }
      json.member("matched", progress.matched)
      json.member("sent", progress.sent)
      json.member("applied", progress.applied)
      json.member("refused", progress.refused)
      json.name("refusals")
      json.object { json in
        for (code, count) in progress.refusals.sorted(by: { $0.key < $1.key }) {
          json.name(code)
          json.integer(count)
        }
      }
      json.member("createdAt", createdAt)
      json.member("finishedAt", orNull: finishedAt)
      json.member("error", orNull: error)
    }
  }
}
