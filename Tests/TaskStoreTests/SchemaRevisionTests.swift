import Foundation
import ReelhaulPostgres
import TaskStore
import Testing

@Suite struct SchemaRevisionTests {
  @Test("routines that changed have another revision")
  func changedRoutinesHaveAnotherRevision() {
    #expect(
      Schema.routines.checksum == Schema.revisions.last,
      "add the checksum \(Schema.routines.checksum) to Schema.revisions")
    #expect(Set(Schema.revisions).count == Schema.revisions.count)
  }

  @Test("every migration is in the program")
  func everyMigrationIsThere() throws {
    let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
    let files = try FileManager.default.contentsOfDirectory(
      atPath: "\(root)/Sources/CReelhaulSchema/migrations"
    ).sorted()
    let names = Schema.migrations.map { migration in
      let number = String(migration.number)
      return String(repeating: "0", count: 4 - number.count) + number + "_\(migration.name).sql"
    }
    #expect(files.filter { !$0.hasPrefix("0001_") } == Array(names.dropFirst()))
  }
}
