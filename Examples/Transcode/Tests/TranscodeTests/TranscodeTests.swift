import Foundation
import ReelhaulTestKit
import Testing
import TranscodeHandler
import TranscodeTask

@Suite(.serialized) struct TranscodeTests {
  /// Runs `body` with a task for a short clip, which a local server offers.
  private func withTask(height: Int = 90, _ body: (HandlerTest<Transcode>) async throws -> Void) async throws {
    let origin = try Origin()
    defer { origin.stop() }
    let test = try await HandlerTest(
      Transcode.Parameters(source: origin.url, height: height),
      change: { $0.destination = "storage://default/films/clip.mp4" }, { Transcode() })
    try await body(test)
    await test.close()
  }

  @Test("the original, the video and the poster are published")
  func success() async throws {
    try await withTask { test in
      let run = try await test.run()
      let output = try #require(run.output, "\(run.outcome)")
      #expect(output.original == "storage://default/films/clip.mp4.\(test.id).original")
      #expect(output.video == "storage://default/films/clip.mp4")
      #expect(output.poster == "storage://default/films/clip.mp4.jpg")
      #expect(FileManager.default.fileExists(atPath: "\(test.storagePath)/films/clip.mp4.jpg"))
      #expect(run.checkpoints.count == 3 && !run.reports.isEmpty)
    }
  }

  @Test("after a crash behind each checkpoint, another worker goes on from there", arguments: [1, 2, 3])
  func crash(checkpoint: Int) async throws {
    try await withTask { test in
      await test.stop(after: .checkpoint(checkpoint), as: .crash)
      let first = try await test.run()
      #expect(first.isCrashed, "\(first.outcome)")
      let second = try await test.resume()
      #expect(second.firstCheckpoint == first.checkpoints.last)
      #expect(second.checkpoints.count == 3 - checkpoint && second.output != nil)
    }
  }

  @Test("a task that is canceled behind its first checkpoint leaves no video")
  func cancel() async throws {
    try await withTask(height: 1080) { test in
      await test.stop(after: .checkpoint(1), as: .cancel)
      let run = try await test.run()
      #expect(run.stopped == .cancel, "\(run.outcome)")
      #expect(!FileManager.default.fileExists(atPath: "\(test.storagePath)/films/clip.mp4"))
    }
  }

  @Test("a task that ffmpeg could not carry out cannot be submitted")
  func invalid() async throws {
    #expect(throws: InvalidTask.self) {
      try Transcode.task(source: "file:///etc/passwd", height: 90, destination: "storage://default/a.mp4")
    }
    #expect(throws: InvalidTask.self) {
      try Transcode.task(source: "http://127.0.0.1/a.mp4", height: 91, destination: "storage://default/a.mp4")
    }
  }
}

/// An HTTP server with one clip.
private struct Origin {
  let url: String
  private let server: Process
  private let directory: URL

  init() throws {
    directory = FileManager.default.temporaryDirectory.appendingPathComponent("transcode-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let clip = directory.appendingPathComponent("clip.mp4").path
    let ffmpeg = try Self.start([
      "ffmpeg", "-nostdin", "-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2",
      "-c:v", "libx264", "-preset", "ultrafast", clip,
    ])
    ffmpeg.waitUntilExit()
    try #require(ffmpeg.terminationStatus == 0)
    let output = Pipe()
    server = try Self.start(
      ["python3", "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", directory.path], output)
    // "Serving HTTP on 127.0.0.1 port 40123 (http://…) ..."
    let words = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self).split(separator: " ")
    let port = try #require(words.firstIndex(of: "port").map { words[$0 + 1] })
    url = "http://127.0.0.1:\(port)/clip.mp4"
  }

  func stop() {
    // SIGTERM would wait for ever: a child inherits the signals that its thread blocks.
    kill(server.processIdentifier, SIGKILL)
    server.waitUntilExit()
    try? FileManager.default.removeItem(at: directory)
  }

  private static func start(_ command: [String], _ output: Pipe? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    if let output { process.standardOutput = output }
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}
