import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

@Suite struct ChunkReceiverTests {
  private static let part = 16 << 10
  private static let announced = 4 * part

  /// A response that another request takes the end of is over with the last byte that is still wanted of it; one that
  /// comes whole is left to end by itself, so that its connection can be used again.
  @Test("a shortened chunk aborts its response at the last wanted byte", arguments: [true, false])
  func aResponseEndsWithItsLastWantedByte(isShortened: Bool) async throws {
    let parts = isShortened ? 3 : 4
    let received = try await receive(parts: parts, wanted: isShortened ? parts * Self.part : nil)
    #expect(received.verdicts.dropLast().allSatisfy { $0 == .continue })
    #expect(received.verdicts.last == (isShortened ? .abort : .continue))
    #expect(received.bytes == Int64(parts * Self.part))
  }

  @Test("a response with more bytes than it announced is aborted, and what is too much is not written")
  func aResponseThatIsTooLongIsAborted() async throws {
    let received = try await receive(parts: 6)
    #expect(received.verdicts.prefix(4).allSatisfy { $0 == .continue })
    #expect(received.verdicts.dropFirst(4).allSatisfy { $0 == .abort })
    #expect(received.bytes == Int64(Self.announced))
  }

  @Test(
    "a connection gathers as much as flows: of its task's limit, of its share of the worker's, else what is usual",
    arguments: [(100 << 10, nil, 32), (nil, 100 << 10, 32), (nil, nil, 64), (4 << 20, nil, 512 / 2)]
      as [(Int64?, Int64?, Int)])
  func buffers(own: Int64?, common: Int64?, kibibytes: Int) async throws {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "receiver-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: false, rate: common)
    var spec = TaskSpec(
      id: .random(), kind: .download, source: "http://a/film.mp4", destination: "storage://default/film.mp4")
    spec.rate = own
    let (source, destination) = (try #require(CurlURL("http://a/film.mp4")), try storage.url("film.mp4"))
    let size = try await loop.task { [spec] in
      Download(
        spec, source: source, credential: [], destination: destination, checkpoint: nil, file: nil,
        ledger: RecordingLedger(), context: context
      ).bufferSize
    }.value
    #expect(size == kibibytes << 10)
    await context.close()
    loop.shutdown()
  }

  @Test("a connection that is faster than was known takes a larger buffer, and loses no byte")
  func growingBuffer() async throws {
    try await DownloadHarness.run {
      ($0.writeBuffer, $0.firstBuffer, $0.bufferTime) = (1 << 20, 4 << 10, .nanoseconds(1))
      $0.limits.firstConnections = 1
    } _: { harness in
      let file = OriginFile(seed: 78, size: 1 << 20)
      harness.origin.serve(DownloadHarness.path, file)
      #expect(await harness.run(harness.spec()) == .succeeded(sha256: file.sha256, bytes: file.size))
    }
  }

  /// What becomes of so many parts of a response that announced four, and how many bytes are written; `wanted` is how many
  /// bytes are still wanted of it when they come.
  private func receive(parts: Int, wanted: Int? = nil) async throws -> (verdicts: [CurlVerdict], bytes: Int64) {
    let storage = try StorageFixture()
    let loop = EventLoop(name: "receiver-test")
    let context = DownloadContext(loop: loop, storage: storage, permits: false)
    let spec = TaskSpec(
      id: .random(), kind: .download, source: "http://a/film.mp4", destination: "storage://default/film.mp4")
    let (source, destination) = (try #require(CurlURL("http://a/film.mp4")), try storage.url("film.mp4"))
    let received = try await loop.task { () -> (verdicts: [CurlVerdict], bytes: Int64) in
      let download = Download(
        spec, source: source, credential: [], destination: destination, checkpoint: nil, file: nil,
        ledger: RecordingLedger(), context: context)
      guard case .request(let request) = download.machine.begin(resuming: nil).first else { return ([], 0) }
      let receiver = ChunkReceiver(request.id, of: download)
      let fetch = Fetch(
        Exchange(request, source: source, destination: destination, options: context.options), receiver: receiver)
      let transfer = CurlTransfer(
        request: CurlRequest(request, to: request.place, spec: spec, credential: [], context: context), handler: fetch,
        client: context.root.client)
      let size = Self.announced
      let head = CurlHead(
        status: 206,
        fields: [
          .init(name: "content-range", value: "bytes 0-\(size - 1)/\(size)"),
          .init(name: "content-length", value: "\(size)"), .init(name: "etag", value: "\"1\""),
        ])
      _ = fetch.receive(head: head, of: transfer)
      if let wanted { receiver.shorten(to: Int64(wanted)) }
      await download.staged?.opening.opened()
      let verdicts = (0..<parts).map { _ in
        [UInt8](repeating: 7, count: Self.part).withUnsafeBytes { fetch.receive(body: $0, of: transfer) }
      }
      await receiver.finish()
      return (verdicts, receiver.received)
    }.value
    await context.close()
    loop.shutdown()
    return received
  }
}
