import Glibc
import LocalFleet
import ReelhaulDigest
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

/// The engine's tests rely on the origin, so it is checked with another client: the `curl` command.
@Suite struct OriginServerTests {
  let origin: OriginServer
  let directory: TemporaryDirectory
  let file = OriginFile(seed: 7, size: 300_001)

  init() throws {
    origin = try OriginServer()
    directory = try TemporaryDirectory()
    origin.serve("/a.mp4", file)
  }

  struct Answer {
    var exit: ReelhaulSystem.ExitStatus
    var head: String
    var body: [UInt8]
  }

  func curl(_ arguments: String...) async throws -> Answer {
    let (head, body) = ("\(directory.path)/head", "\(directory.path)/body")
    let all = ["-s", "-m", "300", "-D", head, "-o", body] + arguments + [origin.url("/a.mp4")]
    let exit = try await ChildProcess("curl", all).wait()
    return try Answer(exit: exit, head: String(decoding: contents(head), as: UTF8.self), body: contents(body))
  }

  func contents(_ path: String) throws -> [UInt8] {
    let file = try FileDescriptor.open(path, O_RDONLY | O_CREAT)
    var bytes = [UInt8](repeating: 0, count: Int(try file.size()))
    _ = try bytes.withUnsafeMutableBytes { buffer in try file.read(into: buffer, at: 0) }
    return bytes
  }

  @Test("the test origin serves whole files and ranges")
  func servesWholeFilesAndRanges() async throws {
    defer { origin.close() }
    let whole = try await curl()
    #expect(whole.exit == .exited(0))
    #expect(whole.body == file.content.bytes(0..<300_001))
    let part = try await curl("-r", "5-70003")
    #expect(part.head.hasPrefix("HTTP/1.1 206"))
    #expect(part.head.contains("Content-Range: bytes 5-70003/300001\r\n"))
    #expect(part.body == file.content.bytes(5..<70004))
    #expect(try await curl("-r", "-10").body == file.content.bytes(299_991..<300_001))
    #expect(try await curl("-r", "300001-").head.contains("bytes */300001"))
    #expect(try await curl("-r", "0-9", "-H", "If-Range: \"other\"").body.count == 300_001)
    #expect(try await curl("-r", "0-9", "-H", "If-Range: \(file.etag ?? "")").body.count == 10)
    #expect(origin.bytesSentAgain("/a.mp4") > 0)
    #expect(file.content.sha256(size: 300_001) == digest(.sha256, of: whole.body))
  }

  @Test("the test origin keeps a connection for several requests")
  func keepsAConnectionForSeveralRequests() async throws {
    defer { origin.close() }
    let exit = try await ChildProcess(
      "curl", ["-s", "-f", "-o", "/dev/null", origin.url("/a.mp4"), "-o", "/dev/null", origin.url("/a.mp4")]
    ).wait()
    #expect(exit == .exited(0))
    #expect(origin.exchanges("/a.mp4").map(\.request.number) == [1, 2])
  }

  @Test(
    "the test origin makes the scripted faults",
    arguments: [
      (OriginFault.ignoresRange, "HTTP/1.1 200", 300_001),
      (.shiftsRange(start: 1, end: 0), "Content-Range: bytes 101-199/300001", 99),
      (.shiftsRange(start: 0, end: 5), "Content-Range: bytes 100-204/300001", 105),
      (.limitsRange(to: 20), "Content-Range: bytes 100-119/300001", 20),
      (.wrongTotal(by: 1), "Content-Range: bytes 100-199/300002", 100),
      (.header("Content-Range", "bytes */*"), "Content-Range: bytes */*", 100),
      (.shortBody(by: 30), "Content-Length: 70", 70),
      (.longBody(by: 30), "Content-Length: 130", 130),
      (.gzip, "Content-Encoding: gzip", 100),
      (.multipart, "multipart/byteranges", 100 + 47 + 14),
      (.wholeOfLength(100), "HTTP/1.1 200", 100),
      (.answer(416, body: "no such range"), "HTTP/1.1 416", 13),
      (.answer(503, headers: [("Retry-After", "-5")], body: ""), "Retry-After: -5", 0),
      (.redirect(to: "file:///etc/passwd"), "Location: file:///etc/passwd", 9),
      (.headerFlood(300), "X-Flood-299", 100),
      (.chunked, "Transfer-Encoding: chunked", 100),
      (.freshTag, "ETag: \"/a.mp4-1\"", 100),
    ])
  func misbehavesAsToldTo(fault: OriginFault, head: String, length: Int) async throws {
    defer { origin.close() }
    origin.always("/a.mp4", fault)
    let answer = try await curl("-r", "100-199")
    #expect(answer.exit == .exited(0))
    #expect(answer.head.contains(head))
    #expect(answer.body.count == length)
  }

  @Test("the test origin cuts and resets connections")
  func cutsAndResets() async throws {
    defer { origin.close() }
    origin.always("/a.mp4", .cut(after: 100_000))
    let cut = try await curl()
    #expect(cut.exit == .exited(18))
    #expect(cut.body == file.content.bytes(0..<100_000))
    origin.always("/a.mp4", .cut(after: nil, reset: true))
    #expect(try await curl().exit == .exited(56))
    origin.always("/a.mp4", .chunked, .cut(after: 10))
    #expect(try await curl().exit == .exited(18))
  }

  @Test("the test origin swaps the file in the middle of an answer")
  func swapsTheFileInMidAnswer() async throws {
    defer { origin.close() }
    let other = OriginFile(seed: 8, size: file.size)
    origin.script("/a.mp4") { $0.number == 1 ? [.swap(after: 1000, to: other)] : [] }
    let mixed = try await curl()
    #expect(mixed.body == file.content.bytes(0..<1000) + other.content.bytes(1000..<300_001))
    #expect(try await curl("-r", "0-9").head.contains(other.etag ?? "?"))
  }

  @Test("the test origin holds an answer until the test releases it")
  func holdsAnAnswerUntilTheTestReleasesIt() async throws {
    defer { origin.close() }
    let gate = OriginGate()
    origin.always("/a.mp4", .hold(after: 299_000, gate))
    async let answer = curl()
    await gate.reached()
    #expect(origin.exchanges("/a.mp4")[0].sent.count == 299_000)
    #expect(!origin.exchanges("/a.mp4")[0].isFinished)
    gate.open()
    #expect(try await answer.body.count == 300_001)
    _ = await origin.first { $0.isFinished }
  }

  @Test("the test origin's HEAD can disagree with GET")
  func headCanDisagree() async throws {
    defer { origin.close() }
    origin.always("/a.mp4", .headLength(17))
    #expect(try await curl("-I").head.contains("Content-Length: 17\r\n"))
    #expect(try await curl().body.count == 300_001)
  }

  @Test("closing the test origin ends a stalled answer")
  func closingEndsAStalledAnswer() async throws {
    origin.always("/a.mp4", .hold(after: 10, OriginGate()))
    async let answer = curl()
    _ = await origin.first { $0.sent.count == 10 }
    origin.close()
    #expect(try await answer.exit == .exited(18))
  }
}

@Test("nginx serves a directory and ends when it is closed")
func nginxServesADirectory() async throws {
  let directory = try TemporaryDirectory()
  let file = try FileDescriptor.open("\(directory.path)/a.mp4", O_WRONLY | O_CREAT)
  try [UInt8]("moving pictures".utf8).withUnsafeBytes { bytes in try file.write(bytes, at: 0) }
  let files = try TemporaryDirectory()
  let nginx = try await NginxOrigin.start(serving: directory.path, files: files.path)
  let exit = try await ChildProcess(
    "curl", ["-s", "-f", "-r", "0-5", "-o", "\(directory.path)/b", nginx.url("/a.mp4")]
  ).wait()
  #expect(exit == .exited(0))
  #expect(try FileDescriptor.open("\(directory.path)/b", O_RDONLY).size() == 6)
  await nginx.close()
  #expect(!LoopbackPort.accepts(UInt16(nginx.port)))
}
