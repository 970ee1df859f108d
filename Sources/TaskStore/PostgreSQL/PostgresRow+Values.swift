import ReelhaulPostgres
import TaskCore

extension PostgresRows {
  /// The row of a statement that returns exactly one.
  var only: PostgresRow {
    get throws {
      guard let row = first else { throw PostgresError(.protocol, "the statement returned no row") }
      return row
    }
  }
}

extension PostgresRow {
  /// One of a fixed set of words. Throws ``StoreError/schema(_:)`` for any other word.
  func known<Word: RawRepresentable<String>>(_ column: Int) throws -> Word {
    let text = try text(column)
    guard let word = Word(rawValue: text) else {
      throw StoreError.schema("the database contains \(Word.self) “\(text)”, which this program does not know")
    }
    return word
  }

  func flags(_ column: Int) throws(PostgresError) -> [Bool] {
    try array(column) { cell throws(PostgresError) in try cell.bool() }
  }
}

extension PostgresValue {
  static func uuids(_ ids: some Collection<UniqueID>) -> PostgresValue {
    uuidArray(ids.map { PostgresUUID(high: $0.high, low: $0.low) })
  }
}

extension UniqueID {
  init(_ halves: (high: UInt64, low: UInt64)) {
    self.init(high: halves.high, low: halves.low)
  }
}
