import ReelhaulTasks

/// Fetches a video, scales it, and makes a poster of it. The task's destination is the URL of the scaled video.
public struct Transcode: TaskDefinition {
  public struct Parameters: Codable, Sendable {
    /// An `http` or `https` URL.
    public var source: String
    /// Of the scaled video, in pixels; the width follows.
    public var height: Int

    public init(source: String, height: Int) {
      self.source = source
      self.height = height
    }
  }

  /// All as `storage://` URLs.
  public struct Output: Codable, Equatable, Sendable {
    public var original: String
    public var video: String
    public var poster: String

    public init(original: String, video: String, poster: String) {
      self.original = original
      self.video = video
      self.poster = poster
    }
  }

  public static let kind = "transcode"

  public static func validate(_ parameters: Parameters) throws {
    guard parameters.source.hasPrefix("http://") || parameters.source.hasPrefix("https://") else {
      throw InvalidTranscode(description: "source must be an http or https URL")
    }
    guard (16...4320).contains(parameters.height), parameters.height.isMultiple(of: 2) else {
      throw InvalidTranscode(description: "height must be an even number from 16 to 4320")
    }
  }

  public init() {}

  /// A task that puts the video of `source` at `destination`, a `storage://` URL.
  public static func task(source: String, height: Int, destination: String) throws -> TaskSpec {
    // The destination is the task's own, so that only workers with its storage claim the task.
    try TaskSpec(Transcode.self, Parameters(source: source, height: height), destination: destination)
  }
}

struct InvalidTranscode: Error, CustomStringConvertible {
  var description: String
}
