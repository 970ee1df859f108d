import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What goes over the wire, without a wire.
@Suite struct DownloadRequestTests {
  private static let identity = SourceIdentity(finalURL: "http://a/film.mp4", size: 1000, etag: "\"1\"")

  private func request(
    _ asked: ResponseGate.Asked, isAtOrigin: Bool = true
  ) async throws -> (request: CurlRequest, options: DownloadOptions) {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "request-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: false)
    let spec = TaskSpec(
      id: .random(), kind: .download, source: "http://a/film.mp4", destination: "storage://default/film.mp4")
    let place = Place(url: "http://a/film.mp4", isAtOrigin: isAtOrigin)
    let request = CurlRequest(
      DownloadMachine.Request(id: 1, place: place, asked: asked, ifRange: "\"1\""), to: place, spec: spec,
      credential: [HeaderField(name: "Authorization", value: "Bearer 1")], context: context)
    await context.close()
    loop.shutdown()
    return (request, context.options)
  }

  @Test(
    "a request for a part ends by its deadline, and every request that stands still is given up",
    arguments: [ResponseGate.Asked.first(count: 100), .part(100..<200, of: identity), .whole])
  func limits(asked: ResponseGate.Asked) async throws {
    let (request, options) = try await request(asked)
    #expect(request.deadline == (asked == .whole ? nil : options.chunkDeadline))
    #expect(request.lowSpeed?.seconds == options.lowSpeed.seconds && (request.lowSpeed?.bytesPerSecond ?? 0) > 0)
  }

  @Test("a request names its range, and the version that it is a part of")
  func range() async throws {
    let (request, _) = try await request(.part(100..<200, of: Self.identity))
    #expect(request.headers.contains { $0.name == "Range" && $0.value == "bytes=100-199" })
    #expect(request.headers.contains { $0.name == "If-Range" && $0.value == "\"1\"" })
  }

  @Test("the fields of a credential go to the source's own server alone", arguments: [true, false])
  func credential(isAtOrigin: Bool) async throws {
    let (request, _) = try await request(.whole, isAtOrigin: isAtOrigin)
    #expect(request.headers.contains { $0.name == "Authorization" } == isAtOrigin)
  }
}
