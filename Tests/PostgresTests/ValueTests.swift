import ReelhaulPostgres
import TestKit
import Testing

struct ValueTests {
  @Test("scalar values are read back as they were sent")
  func scalarsComeBackAsTheyWereSent() async throws {
    try await withPool { pool in
      let rows = try await pool.query(
        "SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11",
        .bool(true), .int16(-7), .int32(.min), .int64(.max), .double(-0.5), .text("Zürich ☂ \u{10FFFF}"),
        .bytea([0, 255, 39, 92]), .uuid(0x0102_0304_0506_0708, .max), .timestamptz(1_700_000_000_123_456),
        .json(Array(#"{"a":[1,"ü"]}"#.utf8)), .text(""))
      let row = rows[0]
      #expect(try row.bool(0))
      #expect(try row.int16(1) == -7)
      #expect(try row.int32(2) == .min)
      #expect(try row.int64(3) == .max)
      #expect(try row.double(4) == -0.5)
      #expect(try row.text(5) == "Zürich ☂ \u{10FFFF}")
      #expect(try row.bytes(6) == [0, 255, 39, 92])
      #expect(try row.uuid(7) == (0x0102_0304_0506_0708, .max))
      #expect(try row.timestamp(8) == 1_700_000_000_123_456)
      #expect(try row.text(9) == #"{"a":[1,"ü"]}"#)
      #expect(try row.text(10) == "")
    }
  }

  @Test("the server sees the same values as the client")
  func theServerSeesTheSameValues() async throws {
    try await withPool { pool in
      let rows = try await pool.query(
        "SELECT $1::text, $2::text", .uuid(0x0123_4567_89ab_cdef, 0x0011_2233_4455_6677), .timestamptz(0))
      #expect(try rows[0].text(0) == "01234567-89ab-cdef-0011-223344556677")
      #expect(try rows[0].text(1).hasPrefix("1970-01-01 00:00:00"))
    }
  }

  @Test("NULLs of every type are read as nil")
  func nullsOfEveryKind() async throws {
    try await withPool { pool in
      let rows = try await pool.query(
        "SELECT $1, $2, $3, $4", .int64(nil), .text(nil), .null(.uuid), .timestamptz(nil))
      for column in 0..<4 { #expect(try rows[0][PostgresColumn(testing: column)] == nil) }
      #expect(try rows[0][0]?.int64() == nil)
      #expect(throws: PostgresError.self) { try rows[0].int64(0) }
    }
  }

  @Test("arrays are unnested in order, with NULLs")
  func arraysUnnestInOrder() async throws {
    try await withPool { pool in
      let rows = try await pool.query(
        """
        SELECT id, name, body, size, at FROM
          unnest($1, $2, $3, $4, $5) WITH ORDINALITY AS u(id, name, body, size, at, place) ORDER BY place
        """,
        .uuidArray([PostgresUUID(high: 1, low: 2), PostgresUUID(high: 3, low: 4)]), .textArray(["a", nil]),
        .byteaArray([nil, [1, 0, 2]]), .int64Array([7, 8]),
        .timestamptzArray([5, nil]))
      #expect(rows.count == 2)
      #expect(try rows[0].uuid(0) == (1, 2))
      #expect(try rows[0].text(1) == "a")
      #expect(try rows[0][2] == nil)
      #expect(try rows[0].int64(3) == 7)
      #expect(try rows[0].timestamp(4) == 5)
      #expect(try rows[1].uuid(0) == (3, 4))
      #expect(try rows[1][1] == nil)
      #expect(try rows[1].bytes(2) == [1, 0, 2])
      #expect(try rows[1][4] == nil)
    }
  }

  @Test("a time before all that PostgreSQL knows is infinitely early") func earlyTimes() async throws {
    try await withPool { pool in
      for time in [Int64.min, Int64.min + 1, Int64.min + 946_684_799_999_999] {
        let rows = try await pool.query("SELECT $1 = '-infinity'", .timestamptz(time))
        #expect(try rows.only.bool(0))
      }
    }
  }

  @Test("arrays are read back with their elements")
  func arraysAreReadBack() async throws {
    try await withPool { pool in
      let rows = try await pool.query(
        "SELECT array_agg(x ORDER BY x), ARRAY['a', NULL], $1::int[], ARRAY[gen_random_uuid()] FROM generate_series(1, 3) x",
        .int32Array([Int32]()))
      #expect(try rows[0].array(0) { cell throws(PostgresError) in try cell.int32() } == [1, 2, 3])
      #expect(try rows[0][1]?.array().map { try $0?.text() } == ["a", nil])
      #expect(try rows[0].array(2) { cell throws(PostgresError) in try cell.int32() } == [])
      #expect(try rows[0].array(3) { cell throws(PostgresError) in try cell.uuid() }.count == 1)
      #expect(throws: PostgresError.self) {
        try rows[0].array(1) { cell throws(PostgresError) in try cell.text() }
      }
    }
  }

  @Test("a wrong type or column is an error")
  func wrongTypesAndColumnsAreErrors() async throws {
    try await withPool { pool in
      let row = try await pool.query("SELECT 1::int4, 'x', 5000000000::int8")[0]
      #expect(throws: PostgresError.self) { try row.text(0) }
      #expect(throws: PostgresError.self) { try row.int64(1) }
      #expect(throws: PostgresError.self) { try row.int32(2) }
      #expect(throws: PostgresError.self) { try row.int64(3) }
      #expect(throws: PostgresError.self) { try row.int64(-1) }
      #expect(try row.int64(0) == 1)
    }
  }

  @Test(
    "values are found by the names of their columns, whatever the order",
    arguments: ["1 first, 2 last", "2 last, 1 first"])
  func columnsAreFoundByName(columns: String) async throws {
    try await withPool { pool in
      let rows = try await pool.query(PostgresStatement("SELECT \(columns), x FROM generate_series(1, 3) x"))
      let read = try rows.decode { columns in
        let (first, last, x) = (try columns["first"], try columns["last"], try columns["x"])
        return { row in [try row.int64(first), try row.int64(last), try row.int64(x)] }
      }
      #expect(read == [[1, 2, 1], [1, 2, 2], [1, 2, 3]])
    }
  }

  @Test("an error of a value or a column names the column and the statement")
  func errorsNameTheColumnAndTheStatement() async throws {
    try await withPool { pool in
      let rows = try await pool.query("SELECT 'x' title,\n  NULL::int size, array[1, NULL] parts, 1 twice, 2 twice")
      let (row, columns) = (try rows.only, rows.columns)
      let attempts: [(column: String, read: () throws -> Void)] = [
        ("title", { _ = try row.int64(columns["title"]) }), ("size", { _ = try row.int64(columns["size"]) }),
        ("title", { _ = try row[columns["title"]]?.uuid() }),
        ("parts", { _ = try row.array(columns["parts"]) { cell throws(PostgresError) in try cell.int32() } }),
        ("twice", { _ = try columns["twice"] }), ("missing", { _ = try columns["missing"] }),
        ("5 columns", { _ = try rows.value { try $0.int64() } }),
      ]
      for (column, read) in attempts {
        let error = #expect(throws: PostgresError.self, "\(column)") { try read() }
        let message = error?.message ?? ""
        #expect(message.contains(column) && message.contains("“SELECT 'x' title, NULL::int size, array"), "\(message)")
      }
      let none = try await pool.query("SELECT 1 FROM generate_series(1, 0)")
      #expect(throws: PostgresError.self) { try none.value { try $0.int64() } }
      #expect(try none.values { try $0.int64() } == [])
    }
  }

  @Test("values of several megabytes are sent and read back")
  func megabytesTravelBothWays() async throws {
    try await withPool { pool in
      let body = [UInt8](repeating: 7, count: 5_000_000)
      let rows = try await pool.query("SELECT $1, length($1)", .bytea(body))
      #expect(try rows[0].bytes(0) == body)
      #expect(try rows[0].int32(1) == 5_000_000)
    }
  }
}
