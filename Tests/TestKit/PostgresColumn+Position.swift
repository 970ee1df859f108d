import ReelhaulPostgres

/// Tests read the statements that they write themselves: `row.int64(0)`. Sources name the column.
extension PostgresColumn: ExpressibleByIntegerLiteral {
  package init(integerLiteral position: Int) {
    self.init(testing: position)
  }
}
