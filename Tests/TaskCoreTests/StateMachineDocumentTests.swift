import Glibc
import TaskCore
import Testing

struct StateMachineDocumentTests {
  /// After a change of the machine, replace the document's diagram and table by the output of the failure.
  @Test("the diagram and the table in docs/state-machine.md are those of the machine")
  func showsTheMachineAsItIs() throws {
    let path = "\(#filePath)".split(separator: "/").dropLast(3).map { "/" + $0 }.joined() + "/docs/state-machine.md"
    let document = try #require(contents(of: path), "cannot read \(path)")
    #expect(document.contains("```mermaid\n\(TaskMachine.diagram)```"), "expected:\n\(TaskMachine.diagram)")
    #expect(document.contains(TaskMachine.table), "expected:\n\(TaskMachine.table)")
  }

  private func contents(of path: String) -> String? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
