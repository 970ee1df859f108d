import ReelhaulSystem
import TestKit
import Testing

/// Needs Chromium. Screenshots go to the directory that `REELHAUL_SCREENSHOTS` names.
@Suite struct DashboardTests {
  private static let script =
    #filePath.split(separator: "/").dropLast(2).map { "/\($0)" }.joined() + "/dashboard/dashboard.py"

  @Test(
    """
    in a browser, a download is watched, paused, resumed and canceled, 100,000 tasks are filtered, 10,000 acted upon, \
    a killed server is followed, each scope signs in, and axe finds nothing serious
    """)
  func aPersonWatchesAFleet() throws {
    let output = try ProgramOutput.run(
      try Peers.python(), [Self.script, TestFleet.binary], limit: 1 << 20, timeout: .seconds(600))
    #expect(
      output.status == .exited(0),
      "\(String(decoding: output.errors, as: UTF8.self))\(String(decoding: output.output, as: UTF8.self))")
  }
}
