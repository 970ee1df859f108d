import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

@Suite struct ReserveTests {
  @Test(
    "a task may reserve a share of the free space that is not promised to others",
    arguments: [
      (ReservePolicy(), 1000, 0, 0, 800), (ReservePolicy(), 1000, 500, 0, 400), (ReservePolicy(), 0, 0, 1000, 800),
      (ReservePolicy(), 100, 200, 0, 0), (ReservePolicy(share: 100), 1001, 0, 0, 1001),
      (ReservePolicy(), Int64.max / 2, 0, 0, Int64.max / 2 / 100 * 80),
    ])
  func limitsATask(policy: ReservePolicy, free: Int64, promised: Int64, held: Int64, limit: Int64) {
    #expect(policy.limit(free: free, total: nil, promised: promised, held: held) == limit)
  }

  @Test(
    "tasks leave a part of the volume free",
    arguments: [
      (ReservePolicy.Floor.percent(1), 10_000, 1000, 0, 900), (.percent(1), 10_000, 50, 0, 0),
      (.percent(1), 10_000, 50, 70, 70), (.percent(0), 10_000, 1000, 0, 1000), (.bytes(400), 10_000, 1000, 100, 700),
      (.bytes(400), nil, 1000, 0, 600), (.percent(99), .max, .max, 0, .max - .max / 100 * 99),
      (.bytes(.max), nil, 1000, 5, 5),
      (.percent(0), .max, .max, 20, .max),
    ] as [(ReservePolicy.Floor, Int64?, Int64, Int64, Int64)])
  func leavesAFloor(floor: ReservePolicy.Floor, total: Int64?, free: Int64, held: Int64, limit: Int64) {
    let policy = ReservePolicy(share: 100, floor: floor)
    #expect(policy.limit(free: free, total: total, promised: 0, held: held) == limit)
    #expect(policy.limit(free: free, total: total, promised: .max, held: held) == held)
  }

  @Test("many tasks together do not fill a volume", .enabled(if: SmallDisk.isPossible))
  func manyTasksLeaveAFloor() throws {
    let disk = try SmallDisk(mebibytes: 10)
    let storage = Storage(roots: ["default": disk.path], reserve: ReservePolicy(share: 50, floor: .bytes(2 * mebibyte)))
    try storage.initialise()
    var files: [StagingFile] = []
    for _ in 0..<100 {
      files.append(try file(storage))
      try? files.last?.reserve(256 << 10)
    }
    let left = try storage.volume("default").room().free
    #expect((2 * mebibyte..<3 * mebibyte).contains(left), "\(left)")
    let error = #expect(throws: StorageError.self) { try file(storage).reserve(2 * mebibyte) }
    #expect(error?.description.contains("2097152 stay free") == true, "\(String(describing: error))")
  }

  let mebibyte: Int64 = 1 << 20

  func storage(on disk: SmallDisk, share: Int) throws -> Storage {
    let storage = Storage(roots: ["default": disk.path], reserve: ReservePolicy(share: share, floor: .bytes(0)))
    try storage.initialise()
    return storage
  }

  func file(_ storage: Storage) throws -> StagingFile {
    try storage.create(
      for: StorageURL("storage://default/a"), name: StagingName(task: .random(), epoch: 1, generation: 1))
  }

  @Test("a reservation beyond the share is refused and changes nothing", .enabled(if: SmallDisk.isPossible))
  func oneTaskGetsAShareOfWhatIsFree() throws {
    let disk = try SmallDisk(mebibytes: 10)
    let storage = try storage(on: disk, share: 80)
    let first = try file(storage)
    #expect(throws: StorageError.self) { try first.reserve(9 * mebibyte) }
    #expect(try first.size == 0)
    try first.reserve(5 * mebibyte)
    #expect(try first.size == 5 * mebibyte)
    let second = try file(storage)
    // More than its share of what is free, and less than that.
    let error = #expect(throws: StorageError.self) { try second.reserve(9 * mebibyte / 2) }
    #expect(error?.code == .diskFull)
    #expect(error?.failure.class == .wait)
    #expect(try second.size == 0)
    try second.reserve(3 * mebibyte)
    // The bytes that the file already has count too, so many small steps get no more space than one big step.
    #expect(throws: StorageError.self) { try first.reserve(7 * mebibyte) }
    try storage.volume("default").discard(second.name)
  }

  /// A file that fits into the empty volume waits until there is room. A file that never fits fails, and the error says
  /// why.
  @Test(
    "a file that a task may not have even on the empty volume fails for good, and one that fits there waits",
    .enabled(if: SmallDisk.isPossible),
    arguments: [
      ((10 << 20) / 100 * 80, StorageError.Code.diskFull, TaskFailure.Class.wait),
      ((10 << 20) / 100 * 80 + 1, .tooLarge, .fail), (10 << 20, .tooLarge, .fail), ((10 << 20) + 1, .tooLarge, .fail),
      (.max, .tooLarge, .fail),
    ] as [(Int64, StorageError.Code, TaskFailure.Class)])
  func aFileLargerThanItsVolumeFailsForGood(size: Int64, code: StorageError.Code, class: TaskFailure.Class) throws {
    let disk = try SmallDisk(mebibytes: 10)
    let storage = try storage(on: disk, share: 80)
    try file(storage).reserve(1 << 20)
    let file = try file(storage)
    let error = #expect(throws: StorageError.self) { try file.reserve(size) }
    #expect(error?.code == code)
    #expect(error?.failure.class == `class`)
    #expect(error?.message.contains("\(size)") == true && error?.message.contains("\(10 << 20)") == true)
  }

  @Test("concurrent reservations promise no byte twice", .enabled(if: SmallDisk.isPossible)) func promisesNoByteTwice()
    throws
  {
    let disk = try SmallDisk(mebibytes: 10)
    // Two storages on one volume, like those of two processes.
    let storages = try [storage(on: disk, share: 100), storage(on: disk, share: 100)]
    let granted = Lock<[StagingFile]>([])
    let mebibyte = self.mebibyte
    let threads = try (0..<16).map { index in
      let file = try file(storages[index % 2])
      return Thread(name: "reserve-\(index)") {
        guard (try? file.reserve(mebibyte)) != nil else { return }
        granted.withLock { $0.append(file) }
      }
    }
    for thread in threads { thread.join() }
    let files = granted.withLock { $0 }
    #expect((8...10).contains(files.count))
    // Every promised byte can be written.
    let bytes = [UInt8](repeating: 1, count: Int(mebibyte))
    for file in files {
      try bytes.withUnsafeBytes { try file.write($0, at: 0) }
      try file.sync()
    }
  }

  @Test("a full disk lets the task wait and keeps its file valid", .enabled(if: SmallDisk.isPossible))
  func aFullDiskIsNotTheTasksFault() throws {
    let disk = try SmallDisk(mebibytes: 1)
    let file = try file(storage(on: disk, share: 80))
    let bytes = [UInt8](repeating: 1, count: Int(2 * mebibyte))
    let error = #expect(throws: StorageError.self) { try bytes.withUnsafeBytes { try file.write($0, at: 0) } }
    #expect(error?.code == .diskFull)
    #expect(error?.isVoid == false)
  }

  /// For example, a worker may be frozen while it reserves.
  @Test("a lock that is never released does not stop reservations")
  func aLockThatIsNeverReleasedIsPassedBy() throws {
    let directory = try TemporaryDirectory()
    let files = try FileDescriptor.open(directory.path, O_RDONLY | O_DIRECTORY)
    let frozen = try files.openBeneath("reserve", O_RDWR | O_CREAT)
    #expect(try frozen.tryLock())
    let reserve = try Reserve(
      files.openBeneath("reserve", O_RDWR), policy: ReservePolicy(), patience: .milliseconds(50))
    for name in ["1", "2"] {
      let file = try files.openBeneath(name, O_RDWR | O_CREAT)
      try reserve.take(mebibyte, for: file, named: name, in: files)
      #expect(try file.size() == mebibyte)
    }
    frozen.unlock()
    let file = try files.openBeneath("3", O_RDWR | O_CREAT)
    try reserve.take(mebibyte, for: file, named: "3", in: files)
    #expect(try frozen.tryLock(), "a caller that takes the lock gives it back")
  }

  @Test("promises count on file systems that cannot allocate blocks", .enabled(if: SmallDisk.isPossible))
  func countsPromisesWhereBlocksCannotBeAllocated() throws {
    let disk = try SmallDisk(mebibytes: 10)
    let directory = try FileDescriptor.open(disk.path, O_RDONLY | O_DIRECTORY)
    let reserve = try Reserve(
      directory.openBeneath("reserve", O_RDWR | O_CREAT), policy: ReservePolicy(share: 100), allocates: false)
    let staging = "staging"
    try directory.makeDirectory(staging)
    let files = try directory.openBeneath(staging, O_RDONLY | O_DIRECTORY)
    let first = try files.openBeneath("1", O_RDWR | O_CREAT)
    let second = try files.openBeneath("2", O_RDWR | O_CREAT)
    try reserve.take(6 * mebibyte, for: first, named: "1", in: files)
    #expect(try first.size() == 6 * mebibyte)
    #expect(try first.status().st_blocks == 0)
    #expect(throws: SystemError.self) { try reserve.take(6 * mebibyte, for: second, named: "2", in: files) }
    try reserve.take(3 * mebibyte, for: second, named: "2", in: files)
    try files.remove("1")
    try reserve.take(6 * mebibyte, for: second, named: "2", in: files)
  }
}
