import Foundation
import ReelhaulWorker

/// ffmpeg and ffprobe as child processes, which are killed when the task is canceled and when the worker ends.
enum FFmpeg {
  /// Containers. A file that says it is a list of others would have ffmpeg read those.
  private static let formats =
    ["-format_whitelist", "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,mpegts,mpeg,avi,flv,asf,mxf,ogg"]

  /// The options that name an input.
  static func input(_ path: String) -> [String] { formats + ["-i", path] }

  /// Runs ffmpeg. `onProgress` gets the microseconds of video that are done.
  static func run(_ arguments: [String], onProgress: (Int64) -> Void = { _ in }) async throws {
    let options = ["-nostdin", "-hide_banner", "-loglevel", "error", "-y", "-progress", "pipe:1"]
    try await lines(of: "ffmpeg", options + arguments) { line in
      if line.hasPrefix("out_time_us="), let done = Int64(line.dropFirst(12)) { onProgress(done) }
    }
  }

  /// How long a video is; nil where the file does not say.
  static func microseconds(of path: String) async throws -> Int64? {
    var seconds: Double?
    try await lines(of: "ffprobe", ["-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0"] + input(path))
    {
      seconds = Double($0) ?? seconds
    }
    // The file says it, and may say anything.
    return seconds.flatMap { Int64(exactly: ($0 * 1_000_000).rounded()) }
  }

  /// Gives each line of a program's output to `onLine`. Throws a permanent ``TaskError`` where the program fails: the
  /// same input would make it fail again. Where it cannot be started, another worker may have it.
  private static func lines(of program: String, _ arguments: [String], onLine: (String) -> Void) async throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    // A broken pipe would not end ffmpeg, because it ignores SIGPIPE.
    process.arguments = ["setpriv", "--pdeathsig", "KILL", program] + arguments
    process.standardInput = FileHandle.nullDevice
    let (output, errors) = (Pipe(), Pipe())
    (process.standardOutput, process.standardError) = (output, errors)
    let (exit, exited) = AsyncStream.makeStream(of: (status: Int32, isKilled: Bool).self)
    process.terminationHandler = { process in
      exited.yield((process.terminationStatus, process.terminationReason == .uncaughtSignal))
      exited.finish()
    }
    try await withCheckedThrowingContinuation { (started: CheckedContinuation<Void, any Error>) in
      // On a thread that stays as long: `--pdeathsig` means the end of the thread that starts the program.
      Thread.detachNewThread {
        do {
          try process.run()
        } catch {
          return started.resume(throwing: error)
        }
        started.resume()
        process.waitUntilExit()
      }
    }
    try await withTaskCancellationHandler {
      let (outputChunks, errorChunks) = (chunks(of: output), chunks(of: errors))
      // Its end tells why. A damaged film makes it very long.
      async let message = errorChunks.reduce(Data()) { ($0 + $1).suffix(500) }
      var rest = Data()
      for await chunk in outputChunks {
        rest += chunk
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
          onLine(String(decoding: rest[..<end], as: UTF8.self))
          rest = Data(rest[(end + 1)...])
        }
      }
      let text = String(decoding: await message, as: UTF8.self)
      let end = await exit.first { _ in true } ?? (-1, false)
      try Task.checkCancellation()
      switch end.status {
      // By the system, where memory ends.
      case _ where end.isKilled:
        throw TaskError.retry("\(program) was killed by signal \(end.status): \(text)", code: "\(program)_killed")
      case 0: break
      case 126, 127:
        throw TaskError.wait("\(program) is missing: \(text)", for: .seconds(60), code: "\(program)_missing")
      case _ where text.contains("No space left on device"):
        throw TaskError.wait("\(program): \(text)", for: .seconds(60), code: "disk_full")
      default: throw TaskError.permanent("\(program) ended with \(end.status): \(text)", code: "\(program)_failed")
      }
    } onCancel: {
      // What it has written is thrown away, so it need not end in good order.
      if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
  }

  /// Read by a thread of its own: a read waits for the program, and `readabilityHandler` may miss the end of a pipe.
  private static func chunks(of pipe: Pipe) -> AsyncStream<Data> {
    AsyncStream { continuation in
      Thread.detachNewThread {
        while case let data = pipe.fileHandleForReading.availableData, !data.isEmpty { continuation.yield(data) }
        continuation.finish()
      }
    }
  }
}
