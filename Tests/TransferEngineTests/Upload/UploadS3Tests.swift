import ReelhaulCurl
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TestKit
import Testing

@testable import TransferEngine

/// What a store that speaks S3 may do to an upload.
@Suite struct UploadS3Tests {
  /// Four parts, of which the last is shorter.
  static let size = 26_000_001
  static let part = 8 << 20
  static let small = 100_000

  static let all = OriginContent(seed: 7).bytes(0..<Int64(size))
  static func bytes(_ count: Int = size) -> [UInt8] { count == size ? all : Array(all[..<count]) }

  static func spec(_ change: (inout TaskSpec) -> Void = { $0.ifExists = .replace }) -> TaskSpec {
    var spec = TaskSpec(
      id: .random(), kind: .upload, source: UploadHarness.source, destination: "s3://films/film.mp4")
    spec.credential = "s3"
    change(&spec)
    return spec
  }

  /// An upload to a store with these faults.
  struct Upload {
    let bytes: [UInt8]
    let options: StoreOptions
    let spec: TaskSpec
    let script: StoreServer.Script

    func run(_ check: (UploadHarness, UploadOutcome) async throws -> Void) async throws {
      try await UploadHarness.run(options: options) { harness in
        try harness.put(bytes)
        harness.store.script(script)
        let outcome = await harness.run(spec)
        try await check(harness, outcome)
      }
    }
  }

  func upload(
    _ bytes: [UInt8] = Self.bytes(), options: StoreOptions = StoreOptions(), spec: TaskSpec = Self.spec(),
    script: @escaping StoreServer.Script
  ) -> Upload {
    Upload(bytes: bytes, options: options, spec: spec, script: script)
  }

  static func expectThere(
    _ harness: UploadHarness, _ bytes: [UInt8] = Self.bytes(), at location: SourceLocation = #_sourceLocation
  ) {
    // A failure must not show megabytes.
    let isThere =
      harness.store.objects["films/film.mp4"]?.bytes == bytes && harness.store.uploads.isEmpty
    #expect(isThere, sourceLocation: location)
  }

  @Test("a run that has lost its task changes no object, and may give up what it has begun") func lostTask()
    async throws
  {
    try await UploadHarness.run { harness in
      harness.store.put("films/film.mp4", bytes: [1])
      let root = try #require(harness.roots["default"])
      let ledger = UploadRecordingLedger()
      ledger.revoke()
      try await root.loop.task {
        let client = S3Client(bucket: "films", root: root, credential: "s3", ledger: ledger)
        for method in [CurlRequest.Method.put, .post, .delete] {
          let call = S3Client.Call(method: method, key: "film.mp4")
          await #expect(throws: TaskFailure.self) { try await client.send(call) }
        }
        #expect(harness.store.exchanges.isEmpty)
        _ = try await client.send(S3Client.Call(method: .head, key: "film.mp4"))
        let ending = S3Client.Call(method: .delete, key: "film.mp4", query: ["uploadId": "1"])
        await #expect(throws: S3Error.self) { try await client.send(ending) }
        #expect(harness.store.exchanges.count == 2)
      }.value
    }
  }

  // MARK: Small files

  @Test("a small file costs one request once the store is known to look at conditions, and replaces nothing")
  func oneRequest() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      #expect(await harness.run(Self.spec { _ in }).failure == nil)
      harness.store.delete("films/film.mp4")
      let before = harness.store.exchanges.count
      #expect(await harness.run(Self.spec { _ in }).failure == nil)
      #expect(harness.store.exchanges.dropFirst(before).map(\.operation) == [.putObject])
      let there = harness.store.put("films/film.mp4", bytes: [1, 2, 3])
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.etag == there.etag)
    }
  }

  @Test("a store that looks at If-Match and not at If-None-Match is looked at before every file, and the task says so")
  func halfOfTheConditions() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      harness.store.script { _ in [.ignoreIfNoneMatchAlone] }
      #expect(await harness.run(Self.spec { _ in }).object?.remark?.contains("If-None-Match") == true)
      harness.store.put("films/film.mp4", bytes: [1, 2, 3])
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.bytes == [1, 2, 3])
    }
  }

  @Test(
    "an object that was taken or replaced before the store is asked about it is neither made again nor replaced",
    arguments: [nil, [1, 2, 3]] as [[UInt8]?], [true, false])
  func takenBeforeTheQuestion(other: [UInt8]?, looksAtBoth: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      harness.store.script { [store = harness.store] request in
        // After one that no object meets, and the one that makes the object.
        if request.operation == .putObject, request.ordinal == 3 {
          if let other { store.put("films/film.mp4", bytes: other) } else { store.delete("films/film.mp4") }
        }
        return looksAtBoth ? [] : [.ignoreIfNoneMatchAlone]
      }
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).map(\.status).prefix(2) == [404, 200])
      #expect(harness.store.objects["films/film.mp4"]?.bytes == other)
      // Its refusal has told nothing: the next object asks again.
      #expect(S3Conditions.of("\(harness.store.url())/films") == .honoured)
    }
  }

  @Test("a store is asked once, also with a credential that may only write") func asksOnce() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      harness.store.always(.headObject, .status(403))
      for number in 0..<2 {
        let outcome = await harness.run(Self.spec { $0.destination = "s3://films/\(number).mp4" })
        #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      }
      #expect(harness.store.exchanges(.putObject).map(\.status) == [404, 200, 412, 200])
    }
  }

  // MARK: Parts

  @Test("a part whose answer has another tag or checksum is sent again", arguments: [false, true])
  func lyingPart(hasChecksums: Bool) async throws {
    try await upload(
      script: { request in
        switch request.operation {
        case .createUpload where !hasChecksums && request["x-amz-checksum-algorithm"] != nil: [.status(501)]
        case .uploadPart where request.partNumber == 2 && request.attempt == 1:
          [hasChecksums ? .wrongChecksumEcho : .wrongETag]
        default: []
        }
      }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == (hasChecksums ? .crc32c : .md5), "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == 5)
      Self.expectThere(harness)
    }
  }

  @Test("the task's own fields of an object are sent with the request that makes it", arguments: [true, false])
  func ownFields(isOfParts: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(isOfParts ? Self.bytes() : [1, 2, 3])
      let own = [
        HeaderField(name: "Cache-Control", value: "max-age=60"), HeaderField(name: "x-amz-acl", value: "public-read"),
        HeaderField(name: "x-amz-server-side-encryption", value: "AES256"),
      ]
      let outcome = await harness.run(
        Self.spec {
          $0.headers = own
          $0.parameters = Array(#"{"storageClass":"STANDARD_IA"}"#.utf8)
        })
      #expect(outcome.failure == nil, "\(outcome)")
      let made = harness.store.exchanges(isOfParts ? .createUpload : .putObject).filter(\.wasApplied)
      #expect(made.count == 1 && made.first?.request["x-amz-storage-class"] == "STANDARD_IA")
      for field in own {
        #expect(made.first?.request[field.name.lowercased()] == field.value)
        #expect(made.first?.request["authorization"]?.contains(field.name.lowercased()) == true)
      }
      let parts = harness.store.exchanges(.uploadPart)
      #expect(parts.allSatisfy { $0.request["x-amz-acl"] == nil } && parts.isEmpty != isOfParts)
    }
  }

  @Test("a tag in capital letters is an MD5 as well") func capitalTags() async throws {
    try await upload(
      spec: Self.spec {
        $0.ifExists = .replace
        $0.parameters = Array(#"{"checksum": "none"}"#.utf8)
      }, script: { $0.operation == .uploadPart ? [.capitalETag] : [] }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == .md5, "\(outcome)")
      #expect(harness.store.exchanges(.uploadPart).count == 4)
      Self.expectThere(harness)
    }
  }

  @Test("a store that always receives other bytes never gets its upload finished") func damagedParts() async throws {
    try await upload(script: { $0.operation == .uploadPart ? [.wrongChecksumEcho] : [] }).run { harness, outcome in
      #expect(outcome.failure?.code == .digestMismatch && outcome.failure?.class == .retry, "\(outcome)")
      #expect(harness.store.exchanges(.completeUpload).isEmpty)
    }
  }

  @Test("only the part that the store has lost is sent again, and the tag of an encrypted part is learned")
  func lostPart() async throws {
    for fault in [StoreFault.dropPart, .header("ETag", "\"of-an-encrypted-part\"")] {
      try await upload(
        script: { $0.operation == .uploadPart && $0.partNumber == 2 && $0.attempt == 1 ? [fault] : [] }
      ).run { harness, outcome in
        #expect(outcome.failure == nil, "\(outcome)")
        #expect(harness.store.exchanges(.createUpload).count == 1)
        let isDropped = if case .dropPart = fault { true } else { false }
        #expect(harness.store.exchanges(.uploadPart).count == (isDropped ? 5 : 4))
        Self.expectThere(harness)
      }
    }
  }

  @Test("a store that keeps losing a part fails the attempt") func lostParts() async throws {
    try await upload(script: { $0.operation == .uploadPart && $0.partNumber == 2 ? [.dropPart] : [] }).run {
      harness, outcome in
      #expect(outcome.failure?.class == .retry, "\(outcome)")
      let (objects, uploads) = (harness.store.objects.count, harness.store.uploads.count)
      #expect(objects == 0 && uploads == 1)
    }
  }

  @Test("the list of parts is believed page by page, and only as far as the bytes agree")
  func listedParts() async throws {
    for fault in [
      StoreFault.listPartsMissing(1), .listPartsExtra, .wrongChecksumEcho, .hugeXML(bytes: 4 << 20),
      .slowDown(times: 2),
    ] {
      var options = StoreOptions()
      options.pageSize = 2
      try await UploadHarness.run(options: options) { harness in
        try harness.put(Self.bytes())
        let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
        harness.store.always(.completeUpload, .status(500))
        #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
        harness.store.always(.listParts, fault)
        let outcome = await harness.run(spec, from: ledger.last)
        #expect(outcome.failure == nil, "\(fault): \(outcome)")
        #expect(harness.store.exchanges(.createUpload).count == 1)
        Self.expectThere(harness)
      }
    }
  }

  @Test("a list of parts that goes on for ever, and says nothing new, is read once more at most")
  func endlessParts() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      let (spec, ledger) = (Self.spec(), UploadRecordingLedger())
      harness.store.always(.completeUpload, .status(500))
      #expect(await harness.run(spec, ledger: ledger).failure?.class == .retry)
      let part = "<Part><PartNumber> 1\n</PartNumber><Size>\n 1 </Size><ETag>x</ETag></Part>"
      let list = "<ListPartsResult><IsTruncated> true </IsTruncated>\(part)</ListPartsResult>"
      harness.store.always(.listParts, .status(200, body: list))
      let outcome = await harness.run(spec, from: ledger.last)
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.listParts).count <= 2)
      Self.expectThere(harness)
    }
  }

  // MARK: Complete

  @Test("a clock that differs by hours is taken from the store", arguments: [small, size])
  func skew(size: Int) async throws {
    let bytes = Self.bytes(size)
    try await upload(bytes, spec: Self.spec { _ in }, script: { _ in [.clockSkew(seconds: -7200)] }).run {
      harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness, bytes)
    }
  }

  @Test("a store that asks for fewer requests gets them, and the upload goes on") func slowDown() async throws {
    try await upload(script: { $0.operation == .uploadPart ? [.slowDown(times: 2)] : [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("a bucket in another region is found there", arguments: [false, true])
  func region(redirects: Bool) async throws {
    var options = StoreOptions()
    options.region = "eu-west-1"
    try await upload(
      options: options, spec: Self.spec { _ in },
      script: { request in
        guard redirects, request["authorization"]?.contains("/eu-west-1/") != true else { return [] }
        let body = "<Error><Code>PermanentRedirect</Code><Endpoint>films.s3.example.com</Endpoint></Error>"
        return [.status(301, headers: [("x-amz-bucket-region", "eu-west-1")], body: body)]
      }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  @Test("a bucket that has no place yet is tried later") func temporaryRedirect() async throws {
    try await upload(script: { _ in [.redirect(to: "http://films.s3.example.com/")] }).run { _, outcome in
      #expect(outcome.failure?.class == .retry, "\(outcome)")
    }
  }

  @Test("a session that ends in the middle is renewed, and nothing is sent twice") func token() async throws {
    for operation in [StoreOperation.headObject, .createUpload, .uploadPart, .completeUpload] {
      try await UploadHarness.run { harness in
        try harness.put(Self.bytes())
        try harness.renew(token: "first")
        harness.store.script { [harness] request in
          guard request.operation == operation, request["x-amz-security-token"] == "first" else { return [] }
          try? harness.renew(token: "second")
          return [.expiredToken]
        }
        let outcome = await harness.run(Self.spec { _ in })
        #expect(outcome.failure == nil, "\(operation): \(outcome)")
        #expect(harness.store.exchanges(.createUpload).count { $0.wasApplied } == 1)
        #expect(harness.store.exchanges(.uploadPart).count { $0.wasApplied } == 4)
        Self.expectThere(harness)
      }
    }
  }

  @Test("a session that has ended for good is tried again, also where the answer to a HEAD cannot say so")
  func endedToken() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      try harness.renew(token: "first")
      harness.store.script { _ in [.expiredToken] }
      let failure = await harness.run(Self.spec { _ in }).failure
      #expect(failure?.code.rawValue == "s3_expired_token" && failure?.class == .retry, "\(failure as Any)")
      #expect(harness.store.exchanges(.headObject).isEmpty == false)
    }
  }

  @Test("without the right to list the bucket a missing object looks forbidden, and is uploaded")
  func forbiddenHead() async throws {
    try await upload(
      spec: Self.spec { _ in },
      script: { [isThere = Lock(false)] request in
        if request.operation == .completeUpload { isThere.withLock { $0 = true } }
        return request.operation == .headObject && !isThere.withLock { $0 } ? [.status(403)] : []
      }
    ).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }

  // MARK: Conditions

  @Test(
    "where the store does not look at conditions, the output says so", arguments: [small, size],
    [(IfExists.fail, false), (.fail, true), (.skip, true)])
  func remark(size: Int, condition: (ifExists: IfExists, ignores: Bool)) async throws {
    try await UploadHarness.run { harness in
      let (ifExists, ignores) = condition
      let bytes = Self.bytes(size)
      try harness.put(bytes)
      harness.store.script { _ in ignores ? [.ignoreIfNoneMatch] : [] }
      for number in 0..<2 {
        let outcome = await harness.run(
          Self.spec { ($0.ifExists, $0.destination) = (ifExists, "s3://films/\(number).mp4") })
        #expect(outcome.failure == nil, "\(outcome)")
        #expect((outcome.object?.remark != nil) == ignores)
        let isThere = harness.store.objects["films/\(number).mp4"]?.bytes == bytes
        #expect(isThere)
      }
      // It is asked once, by the request that makes the object.
      let asked = harness.store.exchanges.filter { $0.request["if-match"] != nil }
      // Of a small one that was made it is asked once more.
      #expect(asked.count == (size == Self.small && !ignores ? 2 : 1))
      #expect(asked.first?.wasApplied == ignores)
      #expect(
        harness.store.exchanges.filter { $0.request.method == "PUT" || $0.request.method == "POST" }.allSatisfy {
          $0.request.bucket == "films" && ["0.mp4", "1.mp4"].contains($0.request.objectKey)
        })
    }
  }

  @Test("a store that refuses to be asked is sent the plain condition", arguments: [small, size])
  func untold(size: Int) async throws {
    let bytes = Self.bytes(size)
    try await upload(bytes, spec: Self.spec { _ in }, script: { $0["if-match"] == nil ? [] : [.status(501)] }).run {
      harness, outcome in
      #expect(outcome.object?.remark?.contains("not known") == true, "\(outcome)")
      Self.expectThere(harness, bytes)
    }
  }

  @Test("no question is asked where an object may be replaced", arguments: [small, size])
  func replace(size: Int) async throws {
    let bytes = Self.bytes(size)
    try await upload(bytes, script: { _ in [.ignoreIfNoneMatch] }).run { harness, outcome in
      #expect(outcome.object != nil && outcome.object?.remark == nil, "\(outcome)")
      #expect(
        harness.store.exchanges.allSatisfy { $0.request["if-match"] == nil && $0.request["if-none-match"] == nil })
    }
  }

  @Test("an object that appears during the upload is kept, whether or not the store looks", arguments: [false, true])
  func appears(ignores: Bool) async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes())
      harness.store.script { [store = harness.store] request in
        if request.operation == .uploadPart, request.ordinal == 2 { store.put("films/film.mp4", bytes: [1, 2, 3]) }
        return ignores ? [.ignoreIfNoneMatch] : []
      }
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure?.code == .destinationExists && outcome.failure?.class == .fail, "\(outcome)")
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  @Test("an object that appears before a second try of a small file is kept") func appearsForSmall() async throws {
    try await UploadHarness.run { harness in
      try harness.put(Self.bytes(Self.small))
      harness.store.script { [store = harness.store] request in
        guard request.operation == .putObject else { return [] }
        if request.ordinal == 1 {
          store.put("films/film.mp4", bytes: [1, 2, 3])
          return [.status(503)]
        }
        return [.ignoreIfNoneMatch]
      }
      let outcome = await harness.run(Self.spec { _ in })
      #expect(outcome.failure?.code == .destinationExists, "\(outcome)")
      Self.expectThere(harness, [1, 2, 3])
    }
  }

  // MARK: Checksums and requests

  @Test("the object has the checksum of all its bytes where the store knows that") func wholeChecksum() async throws {
    let bytes = Self.bytes()
    let crc = StoreChecksum.crc32c.of([bytes])
    try await upload(script: { _ in [] }).run { harness, outcome in
      let object = harness.store.objects["films/film.mp4"]
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      #expect(object?.checksumType == "FULL_OBJECT" && object?.checksums[.crc32c] == crc)
      #expect(harness.store.exchanges(.completeUpload).last?.request["x-amz-checksum-crc32c"] == crc)
    }
    try await upload(
      script: { $0.operation == .createUpload && $0["x-amz-checksum-type"] != nil ? [.status(400)] : [] }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == .crc32c, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.checksumType == "COMPOSITE")
    }
    try await upload(
      script: { $0.operation == .createUpload && $0["x-amz-checksum-algorithm"] != nil ? [.status(501)] : [] }
    ).run { harness, outcome in
      #expect(outcome.object?.verified == .md5, "\(outcome)")
      #expect(harness.store.objects["films/film.mp4"]?.checksumType == nil)
    }
  }

  @Test("a file that is not longer than a part takes one PUT", arguments: [0, 1, part, part + 1])
  func onePut(size: Int) async throws {
    let bytes = Self.bytes(size)
    try await upload(bytes, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      #expect(harness.store.exchanges(.putObject).count == (size > Self.part ? 0 : 1))
      #expect(harness.store.exchanges(.createUpload).count == (size > Self.part ? 1 : 0))
      // Without TLS nothing but the signature protects the bytes.
      let sent = harness.store.exchanges.filter(\.operation.hasContent)
      #expect(sent.allSatisfy { $0.request["x-amz-content-sha256"] != "UNSIGNED-PAYLOAD" })
      Self.expectThere(harness, bytes)
    }
  }

  @Test("all parts but the last have one size, as some stores require") func equalParts() async throws {
    var options = StoreOptions()
    options.wantsEqualParts = true
    try await upload(options: options, script: { _ in [] }).run { harness, outcome in
      #expect(outcome.failure == nil, "\(outcome)")
      Self.expectThere(harness)
    }
  }
}
