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
}
