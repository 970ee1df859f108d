import ReelhaulPostgres
import TaskCore

extension PostgresRow {
  /// A word of ours.
  func known<Word: RawRepresentable<String>>(_ column: PostgresColumn) throws -> Word {
    let text = try text(column)
    guard let word = Word(rawValue: text) else {
      let place = try self[column]?.place ?? ""
      throw StoreError.schema("\(place): the database knows \(Word.self) “\(text)”, which this program does not")
    }
    return word
  }

  func id(_ column: PostgresColumn) throws(PostgresError) -> UniqueID { UniqueID(try uuid(column)) }

  func int(_ column: PostgresColumn) throws(PostgresError) -> Int { Int(try int64(column)) }

  /// Infinite times, which only people write, are the first and the last.
  func time(_ column: PostgresColumn) throws(PostgresError) -> Timestamp {
    min(max(Timestamp(microseconds: try timestamp(column)), .first), .last)
  }

  /// As ``time(_:)``; `nil` for NULL.
  func optionalTime(_ column: PostgresColumn) throws(PostgresError) -> Timestamp? {
    try self[column] == nil ? nil : time(column)
  }

  func texts(_ column: PostgresColumn) throws(PostgresError) -> [String] {
    try array(column) { cell throws(PostgresError) in try cell.text() }
  }

  func ids(_ column: PostgresColumn) throws(PostgresError) -> [UniqueID] {
    try array(column) { cell throws(PostgresError) in UniqueID(try cell.uuid()) }
  }
}

extension PostgresCell {
  func flags() throws(PostgresError) -> [Bool] {
    try array { cell throws(PostgresError) in try cell.bool() }
  }
}

extension PostgresValue {
  static func id(_ id: UniqueID?) -> PostgresValue {
    PostgresValue(id.map { PostgresUUID(high: $0.high, low: $0.low) })
  }

  static func uuids(_ ids: some Collection<UniqueID>) -> PostgresValue {
    uuidArray(ids.map { PostgresUUID(high: $0.high, low: $0.low) })
  }
}

extension UniqueID {
  init(_ halves: (high: UInt64, low: UInt64)) {
    self.init(high: halves.high, low: halves.low)
  }
}
