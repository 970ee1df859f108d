/// One of the demo's films.
struct DemoFilm: Sendable, Hashable {
  /// What happens to the film's task during the download.
  enum Role: Sendable, Hashable {
    case plain, paused, canceled, killed
  }

  let name: String
  /// The approximate size in bytes.
  let size: Int64
  let role: Role

  var fileName: String { "\(name).mp4" }

  /// Twelve films from 5 to 500 MB. The worker of the largest film is killed, because its download runs the longest.
  static let all: [DemoFilm] = [
    film("arrival", 500, .killed), film("backlot", 256, .canceled), film("crane-shot", 160, .paused),
    film("dailies", 96), film("establishing", 64), film("flashback", 48), film("gaffer", 32), film("hero", 24),
    film("insert", 16), film("jump-cut", 12), film("key-light", 8), film("leader", 5),
  ]

  private static func film(_ name: String, _ megabytes: Int64, _ role: Role = .plain) -> DemoFilm {
    DemoFilm(name: name, size: megabytes * 1_000_000, role: role)
  }
}
