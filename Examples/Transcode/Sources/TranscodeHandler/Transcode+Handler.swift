import ReelhaulWorker
import TranscodeTask

/// Three steps, each of which needs the one before. The scratch directory ends with its run, so a step first publishes
/// what the next one needs and then records a checkpoint: another worker can go on from there.
extension Transcode: TaskHandler {
  /// The files that are in storage, as `storage://` URLs.
  public struct Checkpoint: Codable, Equatable, Sendable {
    public var original: String?
    public var video: String?
    public var poster: String?
  }

  public var policy: TaskPolicy { TaskPolicy(maxAttempts: 3, timeout: .seconds(6 * 3600)) }

  public func run(_ parameters: Parameters, context: TaskContext<Checkpoint>) async throws -> Output {
    guard let destination = context.task.destination else { throw TaskError.permanent("the task has no destination") }
    var done = context.lastCheckpoint ?? Checkpoint()

    let original: String
    if let url = done.original {
      original = url
    } else {
      original = try await fetch(parameters.source, for: destination, context)
      done.original = original
      try await context.checkpoint(done, stage: "transcode")
    }

    let video: String
    if let url = done.video {
      video = url
    } else {
      video = try await scale(original, to: destination, height: parameters.height, context)
      done.video = video
      try await context.checkpoint(done, stage: "poster")
    }

    let poster: String
    if let url = done.poster {
      poster = url
    } else {
      poster = try await makePoster(of: video, context)
      done.poster = poster
      try await context.checkpoint(done, stage: "done")
    }
    return Output(original: original, video: video, poster: poster)
  }

  /// Step 1. A download that is interrupted goes on where it was, also in another worker.
  private func fetch(
    _ source: String, for destination: String, _ context: TaskContext<Checkpoint>
  ) async throws -> String {
    var options = TaskTransfer.Options()
    // The name contains the task's id, so only an earlier run of this task can have put a file there.
    options.ifExists = .replace
    options.onProgress = { done, total in context.report(half: 0, done, of: total) }
    return try await context.transfer.download(source, to: "\(destination).\(context.id).original", options).location
  }

  /// Step 2.
  private func scale(
    _ original: String, to destination: String, height: Int, _ context: TaskContext<Checkpoint>
  ) async throws -> String {
    let input = try await context.transfer.path(of: original)
    let result = try await context.scratch() + "/video.mp4"
    let total = try await FFmpeg.microseconds(of: input)
    // At last ffmpeg moves the index to the beginning of the file, and says nothing meanwhile. The handler's timeout ends
    // one that hangs.
    let beat = Task {
      while true {
        context.heartbeat()
        try await Task.sleep(for: .seconds(60))
      }
    }
    defer { beat.cancel() }
    try await FFmpeg.run(
      FFmpeg.input(input)
        + ["-vf", "scale=-2:\(height)", "-c:v", "libx264", "-c:a", "aac", "-movflags", "+faststart", result]
    ) { done in
      context.report(half: 1, done, of: total)
    }
    return try await context.transfer.publish(result, to: destination).location
  }

  /// Step 3.
  private func makePoster(of video: String, _ context: TaskContext<Checkpoint>) async throws -> String {
    let input = try await context.transfer.path(of: video)
    let result = try await context.scratch() + "/poster.jpg"
    try await FFmpeg.run(FFmpeg.input(input) + ["-frames:v", "1", "-q:v", "3", "-update", "1", result])
    return try await context.transfer.publish(result, to: "\(video).jpg").location
  }
}

extension TaskContext<Transcode.Checkpoint> {
  /// Steps count in other units: each is half of the task, in thousandths.
  fileprivate func report(half: Int64, _ done: Int64, of total: Int64?) {
    guard let total, total > 0 else { return heartbeat() }
    report(done: half * 500 + min(done, total) * 500 / total, total: 1000)
  }
}
