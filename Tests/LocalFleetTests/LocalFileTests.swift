import ReelhaulSystem
import Testing

@testable import LocalFleet

@Suite struct LocalFileTests {
  private static let former = """
    2026-11-28 10:00:00.000 UTC [7] FATAL:  data directory "data" has wrong ownership

    """
  private static let recovery = """
    2026-11-28 11:00:00.000 UTC [8] LOG:  starting PostgreSQL 15.14
    2026-11-28 11:00:00.001 UTC [9] LOG:  database system was interrupted while in recovery
    2026-11-28 11:00:00.001 UTC [9] HINT:  This probably means that some data is corrupted.
    2026-11-28 11:00:00.002 UTC [9] PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device
    2026-11-28 11:00:00.002 UTC [9] HINT:  Check free disk space.
    2026-11-28 11:00:00.003 UTC [10] FATAL:  the database system is starting up
    2026-11-28 11:00:00.003 UTC [10] DETAIL:  Consistent recovery state has not been yet reached.
    2026-11-28 11:00:00.004 UTC [8] LOG:  startup process (PID 9) was terminated by signal 6: Aborted
    2026-11-28 11:00:00.005 UTC [8] LOG:  database system is shut down

    """

  @Test("of a log of PostgreSQL the errors that ended this start are told")
  func theCauseIsTold() throws {
    let directory = try TemporaryDirectory()
    let log = "\(directory.path)/log"
    try TextFile.write(Self.former + Self.recovery, to: log)
    #expect(
      LocalFile.end(of: log, from: Self.former.utf8.count) == """
        the end of \(log) says: PANIC:  could not write to file "pg_wal/xlogtemp.9": No space left on device; \
        HINT:  Check free disk space.
        """)
  }

  @Test("of another log the last lines are told, without line breaks")
  func theLastLinesAreTold() throws {
    let directory = try TemporaryDirectory()
    let log = "\(directory.path)/log"
    try TextFile.write((1...12).map { "line \($0)\n" }.joined(), to: log)
    let lines = (3...12).map { "line \($0)" }.joined(separator: "; ")
    #expect(LocalFile.end(of: log) == "the end of \(log) says: \(lines)")
    #expect(LocalFile.end(of: "\(log)/none") == "the end of \(log)/none says: ")
  }
}
