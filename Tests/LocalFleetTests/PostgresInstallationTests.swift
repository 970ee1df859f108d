import Glibc
import LocalFleet
import ReelhaulSystem
import Testing

@Suite struct PostgresInstallationTests {
  @Test("the newest complete installation of a supported version is used")
  func takesTheNewestThatWillDo() throws {
    let root = try TemporaryDirectory()
    func install(_ major: Int) throws {
      let binaries = "\(root.path)/\(major)/bin"
      try makeDirectories(binaries)
      for program in ["postgres", "initdb"] {
        try #require(symlink("/bin/true", "\(binaries)/\(program)") == 0)
      }
    }
    try install(14)
    #expect(throws: LocalFleetError.self) { try PostgresInstallation.find(in: root.path) }
    #expect(throws: LocalFleetError.self) { try PostgresInstallation.find(major: 14, in: root.path) }
    try install(15)
    try install(16)
    #expect(try PostgresInstallation.find(in: root.path).major == 16)
    #expect(try PostgresInstallation.find(major: 15, in: root.path).major == 15)
  }
}
