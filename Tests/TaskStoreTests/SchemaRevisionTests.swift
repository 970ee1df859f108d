import ReelhaulPostgres
import TaskStore
import Testing

@Suite struct SchemaRevisionTests {
  @Test("routines that changed have another revision")
  func changedRoutinesHaveAnotherRevision() {
    #expect(
      Schema.routines.checksum == Schema.revision.checksum,
      "raise Schema.revision.number, and record the checksum \(Schema.routines.checksum)")
  }
}
