import CommandLineKit
import Glibc
import LocalFleet
import ReelhaulSystem

/// Makes the demo's films with ffmpeg: real MP4 files with different lengths and contents.
struct DemoFootage {
  let directory: String
  private let log: String

  /// `directory` is kept for the next demo.
  init(directory: String, log: String) {
    self.directory = directory
    self.log = log
  }

  func path(of film: DemoFilm) -> String { "\(directory)/\(film.fileName)" }

  /// Makes the films that are missing.
  func make(_ films: [DemoFilm], say: (String) -> Void) async throws {
    let missing = films.filter { access(path(of: $0), F_OK) != 0 }
    guard !missing.isEmpty else { return }
    say("Making \(missing.count) films with ffmpeg in \(directory)")
    let clip = "\(directory)/clip.mp4"
    try await ffmpeg(
      [
        "-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25,noise=alls=24:allf=t", "-t", "3", "-c:v", "mpeg4",
        "-q:v", "3", clip,
      ])
    defer { unlink(clip) }
    for film in missing {
      // Repeats the clip until the film has its size. The film has another name until it is complete.
      let unfinished = "\(directory)/unfinished.mp4"
      try await ffmpeg(
        [
          "-stream_loop", "-1", "-i", clip, "-c", "copy", "-metadata", "title=\(film.name)", "-fs", "\(film.size)",
          unfinished,
        ])
      guard rename(unfinished, path(of: film)) == 0 else { throw SystemError.last("rename \(unfinished)") }
    }
  }

  private func ffmpeg(_ arguments: [String]) async throws {
    var options = ChildProcess.Options()
    options.stdout = log
    options.stderr = log
    let process: ChildProcess
    do {
      process = try ChildProcess(
        "ffmpeg", ["-nostdin", "-hide_banner", "-loglevel", "error", "-y"] + arguments, options)
    } catch {
      throw WorkError("\(error)", hint: "The demo makes its films with ffmpeg: apt-get install ffmpeg.")
    }
    guard await process.wait() == .exited(0) else {
      throw WorkError("ffmpeg failed", hint: "Its messages are in \(log).")
    }
  }
}
