import CReelhaulPostgres
import Glibc

/// One `PGconn` in non-blocking pipeline mode: libpq's calls, with their results as values. It does not use the loop.
///
/// Only the thread of its connection's loop may use it. The watch on ``socket`` must be closed before the session is
/// released.
final class Session {
  enum Progress {
    case wantsReading, wantsWriting, connected
    case failed(PostgresError)
  }

  private let connection: OpaquePointer

  /// Starts to connect.
  init(parameters: [String: String]) throws(PostgresError) {
    var keywords: [UnsafeMutablePointer<CChar>?] = []
    var values: [UnsafeMutablePointer<CChar>?] = []
    for (keyword, value) in parameters {
      keywords.append(strdup(keyword))
      values.append(strdup(value))
    }
    defer { for text in keywords + values { free(text) } }
    let started = PQconnectStartParams(
      (keywords + [nil]).map { UnsafePointer($0) }, (values + [nil]).map { UnsafePointer($0) }, 0)
    guard let started else { throw PostgresError(.connection, "libpq is out of memory") }
    connection = started
    // With this setting the messages of a failed attempt contain their SQLSTATE, which libpq does not provide
    // otherwise.
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
    // Otherwise libpq writes the server's notices to standard error.
    PQsetNoticeReceiver(connection, { _, _ in }, nil)
  }

  deinit {
    PQfinish(connection)
  }

  /// May change until the session is connected.
  var socket: Int32 { PQsocket(connection) }

  var isBroken: Bool { PQstatus(connection) == CONNECTION_BAD }

  /// The keywords that it connects with, and their values.
  var parameters: [String: String] {
    guard let options = PQconninfo(connection) else { return [:] }
    defer { PQconninfoFree(options) }
    return PostgresConfiguration.values(of: options)
  }

  /// Whether no transaction is open and nothing is running.
  var isIdle: Bool { PQtransactionStatus(connection) == PQTRANS_IDLE }

  func continueConnecting() -> Progress {
    switch PQconnectPoll(connection) {
    case PGRES_POLLING_READING: return .wantsReading
    case PGRES_POLLING_WRITING: return .wantsWriting
    case PGRES_POLLING_OK:
      guard PQsetnonblocking(connection, 1) == 0, PQenterPipelineMode(connection) == 1 else {
        return .failed(PostgresError(.protocol, errorMessage))
      }
      return .connected
    default: return .failed(ConnectFailure.error(from: errorMessage))
    }
  }

  // Sending: libpq queues each of these, and `flush` sends them.

  func prepare(_ name: String, _ query: PostgresQuery) -> Bool {
    let types = query.values.map { Oid($0.type.oid) }
    return PQsendPrepare(connection, name, query.statement.sql, Int32(types.count), types) == 1
  }

  /// Runs a prepared statement. If `name` is nil, the statement is parsed for this execution only.
  func execute(_ name: String?, _ query: PostgresQuery) -> Bool {
    Self.withParameters(query.values) { count, values, lengths, formats in
      if let name {
        return PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) == 1
      }
      let types = query.values.map { Oid($0.type.oid) }
      return PQsendQueryParams(connection, query.statement.sql, count, types, values, lengths, formats, 1) == 1
    }
  }

  /// Lends the values in the form of libpq, which copies them.
  private static func withParameters<Result>(
    _ values: [PostgresValue], _ body: (Int32, [UnsafePointer<CChar>?], [Int32], [Int32]) -> Result
  ) -> Result {
    // One byte more, because an empty value is not NULL and needs an address.
    let size = values.reduce(1) { $0 + ($1.bytes?.count ?? 0) }
    return withUnsafeTemporaryAllocation(byteCount: size, alignment: 1) { memory in
      var pointers: [UnsafePointer<CChar>?] = []
      var offset = 0
      for value in values {
        let bytes = value.bytes ?? []
        let place = UnsafeMutableRawBufferPointer(rebasing: memory[offset...])
        place.copyBytes(from: bytes)
        let address = UnsafePointer(place.assumingMemoryBound(to: CChar.self).baseAddress)
        pointers.append(value.bytes == nil ? nil : address)
        offset += bytes.count
      }
      let lengths = values.map { Int32($0.bytes?.count ?? 0) }
      return body(Int32(values.count), pointers, lengths, [Int32](repeating: 1, count: values.count))
    }
  }

  func sync() -> Bool { PQpipelineSync(connection) == 1 }

  /// Leaves pipeline mode to run several statements as text. `endScript` returns to it.
  func script(_ sql: String) -> Bool {
    PQexitPipelineMode(connection) == 1 && PQsendQuery(connection, sql) == 1
  }

  func endScript() -> Bool {
    PQenterPipelineMode(connection) == 1
  }

  /// Returns true if the rest must wait until the socket is writable. A failed write is reported by reading.
  @discardableResult
  func flush() -> Bool { PQflush(connection) == 1 }

  // Receiving

  /// Reads the bytes that have arrived. False if the connection is lost; earlier replies can still be taken.
  func consume() -> Bool { PQconsumeInput(connection) == 1 }

  /// The next reply, or nil if it has not arrived.
  func nextReply() -> Exchange<PostgresRows>.Reply? {
    guard PQisBusy(connection) == 0 else { return nil }
    guard let result = PQgetResult(connection) else { return .end }
    let storage = PostgresRows.Storage(result)
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return .rows(PostgresRows(storage))
    case PGRES_PIPELINE_SYNC: return .synced
    case PGRES_PIPELINE_ABORTED: return .skipped
    case PGRES_FATAL_ERROR: return .failed(PostgresError(result: result))
    default: return .failed(PostgresError(.protocol, "an unexpected kind of reply; COPY is not supported"))
    }
  }

  /// Call it on a ``BlockingPool``: libpq's cancel opens its own connection, and blocks.
  func canceler() -> Canceler? { PQgetCancel(connection).map(Canceler.init) }

  var errorMessage: String { String(cString: PQerrorMessage(connection)).trimmingNewlines }
}
