import HTTPServer
import ReelhaulCodec
import ReelhaulDigest
import ReelhaulSystem

/// A server that web hooks are posted to.
package final class HookReceiver: Sendable {
  package struct Post: Sendable {
    package var path: String
    package var id: String
    package var headers: HTTPFields
    package var body: [UInt8]
    package var type: String
    package var sequence: Int
  }

  private struct Handler: HTTPHandler {
    let posts: Lock<[Post]>
    let answer: @Sendable (Post, Int) async -> HTTPResponse

    func admit(_ head: HTTPRequest) async -> HTTPAdmission { .body(limit: 1 << 20) }

    func answer(_ request: HTTPRequest) async -> HTTPResponse {
      var (type, sequence) = ("", 0)
      _ = try? JSONReader.read(request.body) { reader throws(DecodingFailure) in
        try reader.object { reader, name throws(DecodingFailure) in
          switch name {
          case "type": type = try reader.string()
          case "data":
            try reader.object { reader, name throws(DecodingFailure) in
              if name.text == "sequence" { sequence = try reader.integer() } else { try reader.skip() }
            }
          default: try reader.skip()
          }
        }
      }
      let post = Post(
        path: String(request.path), id: request.headers["webhook-id"] ?? "", headers: request.headers,
        body: request.body, type: type, sequence: sequence)
      let count = posts.withLock { posts in
        posts.append(post)
        return posts.count
      }
      return await answer(post, count)
    }
  }

  package let port: Int
  private let all = Lock<[Post]>([])
  private let loop = EventLoop(name: "receiver")
  private let server: HTTPServer

  /// `answer` gets the post and its number, from 1.
  package init(_ answer: @escaping @Sendable (Post, Int) async -> HTTPResponse = { _, _ in HTTPResponse(204) })
    async throws
  {
    server = HTTPServer(loop: loop, settings: .init(), handler: Handler(posts: all, answer: answer))
    port = try await server.start()
  }

  package var posts: [Post] { all.withLock { $0 } }

  package func stop() async {
    await server.stop(within: .zero)
    await Task.detached { [loop] in loop.shutdown() }.value
  }

  /// As a receiver checks it, also for its time, which is in seconds.
  package static func isSigned(_ post: Post, by key: [UInt8]) -> Bool {
    let now = Clocks.realtimeMicroseconds() / 1_000_000
    guard let at = post.headers["webhook-timestamp"].flatMap(Int64.init), abs(now - at) < 300 else { return false }
    let text = "\(post.id).\(post.headers["webhook-timestamp"] ?? "").".utf8
    return post.headers["webhook-signature"] == "v1," + Base64.encode(HMAC.sha256(key: key, Array(text) + post.body))
  }
}
