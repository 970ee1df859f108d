import Foundation
import HTTPServer
import ReelhaulHTTPClient
import ReelhaulSystem
import Testing

/// An API that answers each request by the test's script, and remembers the requests.
struct ScriptedAPI: HTTPHandler {
  typealias Script = @Sendable (_ number: Int, HTTPRequest) async -> HTTPResponse

  let requests = Lock<[HTTPRequest]>([])
  let script: Script

  func admit(_ head: HTTPRequest) async -> HTTPAdmission { .body(limit: 8 << 20) }

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    let number = requests.withLock { requests in
      requests.append(request)
      return requests.count
    }
    return await script(number, request)
  }

  /// Runs `body` with a client of such a server.
  static func run(
    _ script: @escaping Script, _ body: @Sendable (FleetClient, ScriptedAPI) async throws -> Void
  ) async throws {
    let loop = EventLoop(name: "scripted")
    let api = ScriptedAPI(script: script)
    let server = HTTPServer(loop: loop, settings: .init(), handler: api)
    let port = try await server.start()
    var configuration = FleetClient.Configuration()
    configuration.firstDelay = .milliseconds(5)
    let url = try #require(URL(string: "http://127.0.0.1:\(port)/prefix/"))
    do {
      try await body(FleetClient(url: url, token: "rhl_test", configuration: configuration), api)
    } catch {
      await server.stop(within: .zero)
      loop.shutdown()
      throw error
    }
    await server.stop(within: .zero)
    loop.shutdown()
  }
}

extension HTTPResponse {
  static func json(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status, type: "application/json", Array(text.utf8))
  }

  /// A stream that ends after this text.
  static func events(_ text: String) -> HTTPResponse {
    HTTPResponse(
      headers: ["Content-Type": "text/event-stream"], body: .stream { stream in stream.send(Array(text.utf8)) })
  }
}

/// Documents as the server writes them.
enum Documents {
  static func task(_ id: UUID, _ state: String, sequence: Int, done: Int = 0, total: Int? = 100) -> String {
    """
    {"id":"\(id.uuidString.lowercased())","kind":"download","state":"\(state)","priority":0,"queue":"default",\
    "source":"https://a.example/b","destination":null,"bytesTotal":\(total.map(String.init) ?? "null"),"bytesDone":\(done),\
    "rate":null,"eta":null,"attempt":1,"maxAttempts":10,"worker":null,"epoch":1,"generation":0,"sequence":\(sequence),\
    "createdAt":"2026-01-02T03:04:05.678901Z","startedAt":null,"finishedAt":null,"runAt":null,"digest":null,\
    "output":{"bytes":9007199254740993},"error":null,"after":[],"labels":{},"parameters":null}
    """
  }

  static func event(_ id: UUID, _ type: String, _ state: String, sequence: Int, cursor: String) -> String {
    """
    id: \(cursor)
    data: {"id":"\(UUID())","taskId":"\(id)","sequence":\(sequence),"type":"\(type)","at":"2026-01-02T03:04:05Z",\
    "task":\(task(id, state, sequence: sequence))}


    """
  }
}
