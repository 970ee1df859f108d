import TaskCore
import TaskStore
import TestKit
import Testing

@Suite struct LaneKeyTests {
  @Test(
    "a lane is named by the host and the storage of a task",
    arguments: [
      ("https://Example.COM.:8443/a?b#c", "storage://films/x", "example.com", ["films"]),
      ("https://\(String(repeating: "a", count: 3000)).com/", nil, "", []), ("https://a\u{0}b/", nil, "", []),
      ("http://[2001:DB8::1]:80/", nil, "2001:db8::1", []),
      ("storage://in/x", "https://s3.example?x", "s3.example", ["in"]), ("storage://in/x", nil, "", ["in"]),
      ("storage://in/x", "storage://out/y", "", ["out", "in"]), ("storage://in/x", "storage://in/y", "", ["in"]),
      ("storage://in/x/", "storage://out/", "", ["out", "in"]), ("storage://in", "storage:///x", "", []),
      ("noop:", nil, "", []), ("storage://in/x", "s3://Films/x", "films.s3", ["in"]),
      ("storage://in/x", "tus+https://Up.example.:8443/files", "up.example", ["in"]),
    ] as [(String, String?, String, [String])])
  func hostAndStorages(_ source: String, _ destination: String?, _ host: String, _ storages: [String]) {
    let lane = LaneKey(TaskSpec(id: .random(), kind: .copy, source: source, destination: destination))
    #expect(lane.host == host && lane.storages == storages)
  }

  @Test("a limit of a host is for the lanes of that host, also if its name has a last dot") func limitedHost() throws {
    for name in ["Example.org.", "example.org"] { #expect(try LimitScope.host.checked(name) == "example.org") }
  }
}
