import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// Where a tus server may say that an upload is.
extension UploadTusTests {
  @Test("an upload on another host gets no header field of the task") func otherHost() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let other = harness.store.url(host: "localhost")
      harness.store.script { $0.operation == .tusCreate ? [.locationOnOtherHost(other)] : [] }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.tusCreate).allSatisfy { $0.request["x-secret"] == "a secret" })
      let there = harness.store.exchanges(.tusPatch) + harness.store.exchanges(.tusHead)
      #expect(!there.isEmpty && there.allSatisfy { $0.request["x-secret"] == nil })
      Self.expectThere(harness)
    }
  }

  @Test("an upload on a host that the worker must not reach is refused", arguments: ["10.1.2.3", "169.254.169.254"])
  func privateHost(address: String) async throws {
    try await upload(script: { $0.operation == .tusCreate ? [.locationOnOtherHost("http://\(address)")] : [] }).run {
      harness, outcome in
      #expect(outcome.failure?.class == .fail, "\(outcome)")
      #expect(outcome.failure?.code.rawValue.hasPrefix("address_") == true, "\(outcome)")
      #expect(harness.store.exchanges(.tusPatch).isEmpty)
    }
  }

  @Test("a server with TLS cannot have the file sent elsewhere without it") func withoutTLS() async throws {
    try await UploadHarness.run(trustsTestAuthority: true) { harness in
      try harness.put(Self.bytes())
      let relay = try TLSRelay(to: harness.store.port)
      defer { relay.close() }
      let other = harness.store.url(host: "localhost")
      harness.store.script { $0.operation == .tusCreate ? [.locationOnOtherHost(other)] : [] }
      var spec = Self.spec(harness)
      spec.destination = "tus+\(relay.url("/tus"))"
      let outcome = await harness.run(spec)
      #expect(outcome.failure?.code == .redirectRefused, "\(outcome)")
      #expect(harness.store.exchanges(.tusPatch).isEmpty && harness.store.exchanges(.tusHead).isEmpty)
    }
  }

  @Test("nothing is deleted on another host that does not show an upload there", arguments: [200, 404, 405])
  func deletesNothingElsewhere(status: Int) async throws {
    let other = try StoreServer()
    defer { other.close() }
    other.script { request in
      switch request.operation {
      case .tusHead: [.status(status, headers: [("Tus-Resumable", "1.0.0")])]
      case .tusPatch: [.status(405)]
      default: [.status(204)]
      }
    }
    let place = other.url()
    try await upload(script: { $0.operation == .tusCreate ? [.locationOnOtherHost(place)] : [] }).run { _, outcome in
      #expect(outcome.failure?.class == .fail, "\(outcome)")
      #expect(other.exchanges(.tusPatch).count == 1 && other.exchanges(.tusDelete).isEmpty)
    }
  }

  @Test("an upload on another host is given up there") func givenUpElsewhere() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let other = harness.store.url(host: "localhost")
      harness.store.script { request in
        switch request.operation {
        case .tusCreate: [.locationOnOtherHost(other)]
        case .tusPatch: [.status(403)]
        default: []
        }
      }
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure?.class == .fail, "\(outcome)")
      #expect(harness.store.exchanges(.tusDelete).count == 1 && harness.store.uploads.isEmpty)
    }
  }

  @Test("what answers OPTIONS without a word of tus does not tell what the server can", arguments: [200, 204])
  func untoldCapabilities(status: Int) async throws {
    let answer = StoreFault.status(status, headers: [("Allow", "OPTIONS, POST")])
    try await upload(script: { $0.operation == .tusOptions ? [answer] : [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("an upload whose creation is answered with another success is named and ended", arguments: [200, 202])
  func otherSuccess(status: Int) async throws {
    for hasPlace in [true, false] {
      let faults = [StoreFault.statusAfterApplying(status)] + (hasPlace ? [] : [.noLocation])
      try await upload(script: { $0.operation == .tusCreate ? faults : [] }).run { harness, outcome in
        #expect(outcome.failure?.code == .http(status) && outcome.failure?.class == .fail, "\(outcome)")
        #expect(outcome.failure?.message.contains("with 201") == true, "\(outcome)")
        #expect(harness.store.exchanges(.tusPatch).isEmpty && harness.store.uploads.isEmpty == hasPlace)
      }
    }
  }

  @Test("what is no upload is not deleted, although a creation was answered with its URL") func otherPlace()
    async throws
  {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.put("put/film.mp4", bytes: [1, 2, 3])
      harness.store.always(.tusCreate, .status(200, headers: [("Location", "/put/film.mp4")]))
      let outcome = await harness.run(Self.spec(harness))
      #expect(outcome.failure?.code == .http(200), "\(outcome)")
      #expect(harness.store.objects["put/film.mp4"]?.bytes == [1, 2, 3])
    }
  }

  @Test("the task's own metadata is sent, in place of what the upload would say by itself") func metadata() async throws
  {
    try await UploadHarness.run { harness in
      try harness.put([1, 2, 3])
      var spec = Self.spec(harness)
      spec.parameters = Array(#"{"contentType":"video/mp4","metadata":{"filename":"Own.mp4","series":"ü"}}"#.utf8)
      #expect(await harness.run(spec).failure == nil)
      let told = harness.store.objects.values.first?.metadata
      #expect(told?["filename"] == "Own.mp4" && told?["series"] == "ü" && told?["filetype"] == "video/mp4")
    }
  }

  @Test("a new upload without a URL is no upload") func noLocation() async throws {
    try await upload(script: { $0.operation == .tusCreate ? [.noLocation] : [] }).run { harness, outcome in
      #expect(outcome.failure?.code == .badResponse, "\(outcome)")
      #expect(harness.store.exchanges(.tusPatch).isEmpty)
    }
  }
}
