import Glibc
import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct OpenStagingFilesTests {
  let fixture: StorageFixture

  init() throws {
    fixture = try StorageFixture(openFiles: 3)
  }

  private func files(_ count: Int) throws -> [StagingFile] {
    try (0..<count).map { try fixture.staged("file \($0)") }
  }

  private func open(_ files: [StagingFile]) -> Int { files.count { $0.isOpen } }

  @Test("of many staging files few are open, and each can be written, read and synced at any time")
  func few() throws {
    let files = try files(20)
    #expect(open(files) == 3)
    for (number, file) in files.enumerated() {
      try Array(" more".utf8).withUnsafeBytes { try file.write($0, at: 6 + Int64(number / 10)) }
      #expect(open(files) == 3)
    }
    for (number, file) in files.enumerated().reversed() {
      try file.sync()
      #expect(try file.read(0..<100) == Array("file \(number) more".utf8))
    }
    #expect(open(files) == 3)
  }

  @Test("files that are used stay open, and those that are not are closed")
  func used() throws {
    let files = try files(3)
    for _ in 0..<10 {
      // The first use may have to open it.
      for _ in 0..<2 { _ = try files[0].size }
      _ = try fixture.staged("another one")
    }
    #expect(files[0].isOpen)
    #expect(!files[1].isOpen)
  }

  @Test("a closed file whose name has become another file's is not written")
  func replaced() throws {
    let file = try fixture.staged("0123456789")
    file.close()
    #expect(!file.isOpen)
    let path = "\(fixture.staging)/\(file.name)"
    unlink(path)
    try TextFile.write("somebody else", to: path)
    #expect { try file.write("wrong") } throws: { ($0 as? StorageError)?.code == .stagingMissing }
    #expect(try TextFile.read(path) == "somebody else")
  }

  @Test("a closed file that was discarded is missing")
  func discarded() throws {
    let file = try fixture.staged("0123456789")
    file.close()
    try file.volume.discard(file.name)
    #expect { try file.sync() } throws: { ($0 as? StorageError)?.code == .stagingMissing }
  }

  @Test("a file that is published is open until its end, also under its new name")
  func published() throws {
    let file = try fixture.staged("0123456789")
    file.close()
    #expect(try file.volume.publish(file, to: fixture.url("a.mp4"), ifExists: .fail) == .published)
    file.close()
    _ = try files(5)
    #expect(try file.read(0..<4) == Array("0123".utf8))
  }

  @Test("files that are gone leave their places")
  func gone() throws {
    for _ in 0..<10 { _ = try files(3) }
    let last = try files(3)
    #expect(open(last) == 3)
  }

  @Test("threads that use more files than may be open all find their bytes")
  func threads() async throws {
    let files = try files(12)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          for round in 0..<200 {
            let index = (round * 7 + worker * 3) % files.count
            let text = "\(worker):\(index)."
            try Array(text.utf8).withUnsafeBytes { try files[index].write($0, at: Int64(100 + 10 * worker)) }
            let start = Int64(100 + 10 * worker)
            #expect(try files[index].read(start..<start + Int64(text.utf8.count)) == Array(text.utf8))
          }
        }
      }
      try await group.waitForAll()
    }
  }
}
