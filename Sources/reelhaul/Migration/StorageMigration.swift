import CommandLineKit
import Glibc
import ReelhaulPostgres
import ReelhaulSystem
import TaskCore
import TransferEngine
import WorkerOptions

/// Marks storage roots as volumes. One without a mark may be the directory below a disk that is not mounted: if the
/// database knows its storage, it is marked only if it is said to be a new volume.
struct StorageMigration {
  /// A storage that had a volume before.
  struct Former: Sendable {
    var name: String
    /// The volume that a worker has told; nil if none of these workers is known any more.
    var volume: UniqueID?
  }

  private let storage: Storage
  /// The names of the roots that have no mark, without those that are new volumes.
  let doubtful: [String]

  /// `new`: the names of the roots that are new volumes.
  init(_ roots: [String: String], new: [String]) throws(UsageError) {
    if let name = new.first(where: { roots[$0] == nil }) {
      throw UsageError("\(OptionSpec.newVolume.spelling): \(OptionSpec.storage.setting) has no root \(name)")
    }
    storage = Storage(roots: roots)
    doubtful = roots.filter { !new.contains($0.key) && (try? Volume.hasMark($0.value)) == false }.keys.sorted()
  }

  /// Those of the doubtful storages that the database knows. Without a worker that tells a volume, tasks that have run
  /// tell that there was one.
  func former(in pool: PostgresPool) async throws -> [Former] {
    var former: [Former] = []
    for name in doubtful {
      let rows = try await pool.query(Self.uses, .text(name), timeout: .seconds(600))
      let volume = try rows.only[try rows.columns["volume"]]?.uuid()
      guard try volume != nil || rows.only.bool(rows.columns["is_used"]) else { continue }
      former.append(Former(name: name, volume: volume.map { UniqueID(high: $0.high, low: $0.low) }))
    }
    return former
  }

  /// `$1`: the storage.
  private static let uses = PostgresStatement(
    """
    select (select v.id
              from worker w cross join lateral unnest(w.volume_names, w.volume_ids) v(name, id)
             where v.name = $1 order by w.lease_until desc limit 1) volume,
           exists (select from task
                    where started_at is not null
                      and exists (select from unnest(array[spec ->> 'source', spec ->> 'destination']) u(url)
                                   where url ~* '^storage://' and split_part(url, '/', 3) = $1)) is_used
    """)

  func complaint(_ former: Former) -> String {
    let use = former.volume.map { "workers have known it as volume \($0)" } ?? "tasks have used this storage"
    return "storage \(former.name): \(storage.roots[former.name] ?? "") has no mark, but \(use): is the disk mounted?"
  }

  func run(former: [Former], isDry: Bool) throws -> [StorageReport] {
    let before = storage.volumes
    for (name, path) in storage.roots.sorted(by: { $0.key < $1.key }) where before[name] == nil {
      guard (try? FileDescriptor.open(path, O_RDONLY | O_DIRECTORY)) != nil else {
        throw CommandFailure(.failed, "storage \(name): there is no directory \(path): mount it or create it first")
      }
    }
    if let former = former.first {
      throw CommandFailure(
        .failed, complaint(former),
        hint: "Mount it. If this is to be a new volume, add \(OptionSpec.newVolume.spelling) \(former.name).")
    }
    // Another process may have marked a root meanwhile.
    let marked = try isDry ? [] : storage.initialise()
    let after = storage.volumes
    return storage.roots.sorted { $0.key < $1.key }.map { name, path in
      StorageReport(
        name: name, path: path, volume: after[name].map { "\($0)" },
        status: marked.contains(name) ? .marked : isDry && before[name] == nil ? .pending : .unchanged)
    }
  }
}
