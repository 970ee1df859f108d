import TaskCore

/// One of the demo's films, and where it goes.
struct DemoFilm: Sendable, Hashable {
  /// What happens to the film's task during the transfer.
  enum Role: Sendable, Hashable {
    case plain, paused, canceled, killed
  }

  let name: String
  /// The approximate size in bytes.
  let size: Int64
  let role: Role
  /// A download from the origin, the upload of a film that was downloaded, or a copy from the origin to the store.
  let kind: TaskKind

  var fileName: String { "\(name).mp4" }
  var title: String { kind == .download ? fileName : "\(fileName) to S3" }

  /// Twelve films from 5 to 500 MB to download. The worker of the largest film is killed, because its download runs the
  /// longest. One film of these goes on to an S3 store, and its worker is killed too; another is copied there.
  static let all: [DemoFilm] = [
    film("arrival", 500, .killed), film("backlot", 256, .canceled), film("crane-shot", 160, .paused),
    film("dailies", 96), film("establishing", 64), film("flashback", 48), film("gaffer", 32), film("hero", 24),
    film("insert", 16), film("jump-cut", 12), film("key-light", 8), film("leader", 5),
    film("dailies", 96, .killed, .upload), film("montage", 40, .plain, .copy),
  ]

  private static func film(
    _ name: String, _ megabytes: Int64, _ role: Role = .plain, _ kind: TaskKind = .download
  ) -> DemoFilm {
    DemoFilm(name: name, size: megabytes * 1_000_000, role: role, kind: kind)
  }
}
