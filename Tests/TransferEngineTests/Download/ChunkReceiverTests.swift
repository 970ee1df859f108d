import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import ReelhaulCurl
@testable import TransferEngine

@Suite struct ChunkReceiverTests {
  /// If another request takes over the end of a response, the response is aborted with its last wanted byte. A response
  /// that arrives complete is left to end by itself, so that its connection can be used again.
  @Test("a shortened chunk aborts its response at the last wanted byte", arguments: [true, false])
  func aResponseEndsWithItsLastWantedByte(isShortened: Bool) async throws {
    let (part, count) = (16 << 10, 4)
    let wanted = isShortened ? part * (count - 1) : part * count
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
      let size = part * count
      let head = CurlHead(
        status: 206,
        fields: [
          .init(name: "content-range", value: "bytes 0-\(size - 1)/\(size)"),
          .init(name: "content-length", value: "\(size)"), .init(name: "etag", value: "\"1\""),
        ])
      _ = fetch.receive(head: head, of: transfer)
      if isShortened { receiver.shorten(to: Int64(wanted)) }
      await download.staged?.opening.opened()
      let verdicts = (0..<wanted / part).map { _ in
        [UInt8](repeating: 7, count: part).withUnsafeBytes { fetch.receive(body: $0, of: transfer) }
      }
      await receiver.finish()
      return (verdicts, receiver.received)
    }.value
    #expect(received.verdicts.dropLast().allSatisfy { $0 == .continue })
    #expect(received.verdicts.last == (isShortened ? .abort : .continue))
    #expect(received.bytes == Int64(wanted))
    await context.close()
    loop.shutdown()
  }
}
