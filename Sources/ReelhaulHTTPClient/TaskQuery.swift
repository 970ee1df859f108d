import Foundation

/// Selects tasks. An empty list, and what is nil, selects all.
public struct TaskQuery: Sendable {
  public var states: [FleetTask.State] = []
  public var queues: [String] = []
  public var kinds: [String] = []
  public var hosts: [String] = []
  /// `KEY=VALUE`, or `KEY` for any value. Without commas.
  public var labels: [String] = []
  /// Part of the id, the source or the destination; upper and lower case are equal.
  public var text: String?
  public var createdAfter: Date?
  public var createdBefore: Date?
  public var oldestFirst = false
  /// 1…1000: how many tasks a page has at most.
  public var limit = 100

  public init() {}

  /// Throws ``FleetError`` for a value with a comma, which the server would take for two.
  func items(cursor: String? = nil) throws(FleetError) -> [(String, String?)] {
    func list(_ values: [String]) throws(FleetError) -> String? {
      if let value = values.first(where: { $0.contains(",") }) {
        throw FleetError(.invalidTask, "\"\(value)\" has a comma: no query can select it")
      }
      return values.isEmpty ? nil : values.joined(separator: ",")
    }
    return [
      ("state", try list(states.map(\.rawValue))), ("queue", try list(queues)), ("kind", try list(kinds)),
      ("host", try list(hosts)), ("label", try list(labels)), ("text", text),
      ("after", createdAfter.map(FleetTime.text)),
      ("before", createdBefore.map(FleetTime.text)), ("sort", oldestFirst ? "createdAt" : nil), ("limit", "\(limit)"),
      ("cursor", cursor),
    ]
  }
}

/// Tasks that match a query.
public struct TaskPage: Decodable, Sendable {
  public var tasks: [FleetTask]
  /// Begins the next page; nil after the last one.
  public var next: String?
  /// How far back the fleet has looked for this page, if it stopped before the page was full.
  public var searchedTo: Date?
}
