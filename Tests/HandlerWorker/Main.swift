import Foundation
import ReelhaulWorker

/// A worker of the tests: `HANDLERS` names the handlers that it has, with commas between them.
@main struct Main {
  private static let all: [any TaskHandler] = [Gated(), Steps(), Zombie(), Resize(), Scale(), Reporter()]

  static func main() async throws {
    let names = getenv("HANDLERS").map { String(cString: $0).split(separator: ",").map(String.init) } ?? []
    do {
      try await ReelhaulWorker.run(handlers: all.filter { names.contains(kind(of: $0)) })
    } catch let error as WorkerError {
      FileHandle.standardError.write(Data("error: \(error)\n".utf8))
      exit(error.code)
    }
  }

  private static func kind<Handler: TaskHandler>(of _: Handler) -> String { Handler.kind }
}
