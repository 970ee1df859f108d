import Glibc
import ReelhaulKafka
import ReelhaulSystem
import Testing

/// kcat is an independent client: it reads our records, and we read its records.
@Suite(.enabled(if: kcatPath != nil, "kcat is not installed"))
struct KcatTests {
  @Test("a line that kcat sends arrives as a record")
  func oneLineOfAnotherProcessIsARecord() async throws {
    let kcat = try #require(kcatPath)
    let directory = try TemporaryDirectory()
    let line = #"{"command":"pause","id":"018f4b5e-0000-7000-8000-000000000001"}"#
    let file = "\(directory.path)/line"
    let written = fopen(file, "w").map { file in
      defer { fclose(file) }
      return fputs(line + "\n", file) >= 0
    }
    #expect(written == true)
    try await withDevelopmentBroker(topics: [TopicSpec(name: "t", partitions: 48)]) { configuration in
      let producing = try ChildProcess(kcat, ["-P", "-b", configuration.bootstrap, "-t", "t", "-l", file])
      #expect(await producing.wait() == .exited(0))
      let reader = try await KafkaReader.open(configuration, topics: ["t"], from: .beginning)
      let record = try #require(try await reader.next()?.first)
      #expect(text(record.value) == line)
      #expect(record.key == nil)
      await reader.close()
    }
  }
}

private let kcatPath: String? = ["/usr/bin/kcat", "/usr/local/bin/kcat"].first { (path: String) in
  access(path, X_OK) == 0
}
