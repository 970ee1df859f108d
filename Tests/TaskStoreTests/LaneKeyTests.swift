import TaskCore
import TaskStore
import Testing

@Suite struct LaneKeyTests {
  @Test(
    arguments: [
      ("https://User@Example.COM:8443/a?b#c", "storage://films/x", "example.com", "films"),
      ("http://[2001:DB8::1]:80/", nil, "2001:db8::1", ""),
      ("storage://in/x", "https://s3.example?x", "s3.example", "in"),
      ("storage://in/x", "storage://out/y", "", "out"), ("noop:", nil, "", ""),
    ] as [(String, String?, String, String)])
  func hostAndStorage(_ source: String, _ destination: String?, _ host: String, _ storage: String) {
    let lane = LaneKey(TaskSpec(id: .random(), kind: .copy, source: source, destination: destination))
    #expect(lane.host == host && lane.storage == storage)
  }
}
