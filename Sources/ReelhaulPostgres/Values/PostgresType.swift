/// A type's object identifier in `pg_type`. Those of built-in types never change.
package struct PostgresType: Hashable, Sendable {
  package let oid: UInt32

  package init(oid: UInt32) {
    self.oid = oid
  }

  package static let bool = PostgresType(oid: 16)
  package static let bytea = PostgresType(oid: 17)
  package static let int64 = PostgresType(oid: 20)
  package static let int16 = PostgresType(oid: 21)
  package static let int32 = PostgresType(oid: 23)
  package static let text = PostgresType(oid: 25)
  package static let oid = PostgresType(oid: 26)
  package static let json = PostgresType(oid: 114)
  package static let float = PostgresType(oid: 700)
  package static let double = PostgresType(oid: 701)
  package static let timestamptz = PostgresType(oid: 1184)
  package static let uuid = PostgresType(oid: 2950)
  package static let jsonb = PostgresType(oid: 3802)

  package static let boolArray = PostgresType(oid: 1000)
  package static let byteaArray = PostgresType(oid: 1001)
  package static let int16Array = PostgresType(oid: 1005)
  package static let int32Array = PostgresType(oid: 1007)
  package static let textArray = PostgresType(oid: 1009)
  package static let int64Array = PostgresType(oid: 1016)
  package static let doubleArray = PostgresType(oid: 1022)
  package static let timestamptzArray = PostgresType(oid: 1185)
  package static let jsonArray = PostgresType(oid: 199)
  package static let uuidArray = PostgresType(oid: 2951)
}
