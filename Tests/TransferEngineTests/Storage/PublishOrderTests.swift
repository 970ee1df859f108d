import Glibc
import ReelhaulSystem
import TaskCore
import TestKit
import Testing
import TransferEngine

@Suite struct PublishOrderTests {
  let fixture: StorageFixture

  init() throws {
    fixture = try StorageFixture()
  }

  @Test("a file is synced, then renamed, then its directory is synced", arguments: [IfExists.fail, .replace])
  func order(ifExists: IfExists) async throws {
    let file = try fixture.staged("film")
    let destination = try fixture.url("a/b/film.mp4")
    let steps = try await DiskWatch.run(below: fixture.root) { disk in
      let result = try file.volume.publish(file, to: destination, ifExists: ifExists)
      #expect(result == .published)
      return disk.steps
    }
    #expect(
      steps == [
        .synced(".reelhaul/staging/\(file.name)"), .synced(""), .synced("a"), .renamed(to: "a/b/film.mp4"),
        .synced("a/b"),
      ])
  }

  @Test("a published file that is removed does not return after a power cut") func removed() async throws {
    let task = UniqueID.random()
    let (file, destination) = (try fixture.staged("film", task: task), try fixture.url("a/film.mp4"))
    let steps = try await DiskWatch.run(below: fixture.root) { disk in
      _ = try file.volume.publish(file, to: destination, ifExists: .fail)
      let before = disk.steps.count
      let isRemoved = try file.volume.removePublished(at: destination, by: [task])
      #expect(isRemoved)
      return disk.steps.dropFirst(before)
    }
    #expect(steps.last == .synced("a"), "\(steps)")
  }

  @Test("a volume's marker and the directories around it are on stable storage once it is initialised")
  func marker() async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/new"
    let steps = try await DiskWatch.run(below: path) { disk in
      try Volume.initialise(name: "new", path: path)
      return disk.steps
    }
    let rename = try #require(steps.firstIndex(of: .renamed(to: ".reelhaul/volume")))
    #expect(
      steps[..<rename].contains {
        if case .synced(let path) = $0 { path.hasPrefix(".reelhaul/volume-") } else { false }
      })
    #expect(Array(steps[rename...].dropFirst()) == [.synced(".reelhaul"), .synced("")])
  }
}
