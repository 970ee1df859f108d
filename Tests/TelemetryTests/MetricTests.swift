import Glibc
import ReelhaulTelemetry
import TestKit
import Testing

/// Metrics are counted by indices, and written in the format of Prometheus.
@Suite struct MetricTests {
  private enum Fruit: Int, CaseIterable { case apple, redPlum }

  @Test("each combination of label values has its own number, also from many threads at once")
  func counters() async throws {
    let metric = CountedMetric.counter(
      "fruits_total", MetricLabel("fruit", Fruit.self), MetricLabel("place", ["here", "there"]), help: "Fruits.")
    await withTaskGroup { group in
      for _ in 0..<8 { group.addTask { for _ in 0..<1000 { metric.add(2, Fruit.redPlum.rawValue, 1) } } }
    }
    metric.add(1, Fruit.apple.rawValue, 0)
    var text = MetricsSnapshot()
    text.add(metric)
    #expect(
      String(decoding: text.bytes, as: UTF8.self) == """
        # HELP fruits_total Fruits.
        # TYPE fruits_total counter
        fruits_total{fruit="apple",place="here"} 1
        fruits_total{fruit="apple",place="there"} 0
        fruits_total{fruit="red_plum",place="here"} 0
        fruits_total{fruit="red_plum",place="there"} 16000

        """)
  }

  @Test("a duration counts in the bucket that it fits in, on the bound too, and in all larger ones")
  func histograms() throws {
    let metric = DurationHistogram("a_seconds", MetricLabel("of", ["x", "y"]), buckets: [0.25, 1], help: "A.")
    for time in [250_000_000, 250_000_001, 1_000_000_000, 3_500_000_000, -5] as [Int64] {
      metric.observe(nanoseconds: time, 1)
    }
    var text = MetricsSnapshot()
    text.add(metric)
    #expect(
      String(decoding: text.bytes, as: UTF8.self) == """
        # HELP a_seconds A.
        # TYPE a_seconds histogram
        a_seconds_bucket{of="y",le="0.25"} 2
        a_seconds_bucket{of="y",le="1"} 4
        a_seconds_bucket{of="y",le="+Inf"} 5
        a_seconds_sum{of="y"} 5.000000001
        a_seconds_count{of="y"} 5

        """)
  }

  @Test("the sum of a histogram may be more than an Int64 of nanoseconds, also from many threads at once")
  func largeSum() async throws {
    let metric = DurationHistogram("a_seconds", buckets: [1], help: "A.")
    for _ in 0..<2 { metric.observe(nanoseconds: Int64.max / 2 + 1) }
    let small = DurationHistogram("b_seconds", buckets: [1], help: "B.")
    await withTaskGroup { group in
      for _ in 0..<8 { group.addTask { for _ in 0..<1000 { small.observe(nanoseconds: 1_000_000) } } }
    }
    var text = MetricsSnapshot()
    text.add(metric, small)
    let lines = String(decoding: text.bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.contains("a_seconds_sum 9223372036.854776"))
    #expect(lines.contains("b_seconds_sum 8"))
  }

  @Test("a label has a limited number of names, and further ones count as other") func names() throws {
    let names = MetricNames(limit: 2)
    let metric = DurationHistogram("a_seconds", MetricLabel("queue", names), buckets: [1], help: "A.")
    for name in ["b", "a\"\n\\", "c", "b", "other", "d"] { metric.observe(nanoseconds: 1, names.index(of: name)) }
    var text = MetricsSnapshot()
    text.add(metric)
    let read = try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
    #expect(read.value("a_seconds", ["queue": "b"]) == 2)
    #expect(read.value("a_seconds", ["queue": #"a\"\n\\"#]) == 1)
    #expect(read.value("a_seconds", ["queue": "other"]) == 3)
    #expect(read.families["a_seconds"]?.series.count == 3)
  }

  @Test("the process tells of itself what all exporters tell") func process() throws {
    var text = MetricsSnapshot()
    text.addProcess()
    let read = try PrometheusText(String(decoding: text.bytes, as: UTF8.self))
    #expect(read.value("process_resident_memory_bytes") > 1_000_000)
    #expect(read.value("process_open_fds") >= 3 && read.value("process_max_fds") > 3)
    #expect(read.value("process_start_time_seconds") > 1_600_000_000)
    #expect(read.families["process_cpu_seconds_total"] != nil)
  }

  @Test("the descriptors that are counted are those that are open without the counting") func descriptors() throws {
    // Other tests open and close some meanwhile.
    let isExact = (0..<200).contains { _ in
      let open = (0..<getdtablesize()).count { fcntl($0, F_GETFD) >= 0 }
      var text = MetricsSnapshot()
      text.addProcess()
      let read = try? PrometheusText(String(decoding: text.bytes, as: UTF8.self))
      return read?.value("process_open_fds") == Double(open)
    }
    #expect(isExact)
  }

  @Test(
    "the reader of the tests refuses what Prometheus refuses",
    arguments: [
      "a 1\n", "# HELP a b\n# TYPE a gauge\na 1", "# HELP a b\n# TYPE a gauge\na x\n",
      "# HELP a b\n# TYPE a gauge\na{b=\"c} 1\n", "# HELP a b\n# TYPE a gauge\na 1\na 2\n",
      "# HELP a b\n# TYPE a counter\na 1\n", "# HELP a b\n# TYPE a gauge\nb 1\n",
      "# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 1\na_sum 1\na_count 1\n",
      "# HELP a b\n# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
    ]) func strict(_ text: String)
  {
    #expect(throws: PrometheusText.Problem.self) { try PrometheusText(text) }
  }
}
