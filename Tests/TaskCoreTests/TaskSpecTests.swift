import TaskCore
import Testing

private let id = UniqueID(high: 1, low: 2)

private func field(_ change: (inout TaskSpec) -> Void) -> String? {
  var spec = TaskSpec(
    id: id, kind: .download, source: "https://a/b.mp4", destination: "storage://default/b.mp4")
  change(&spec)
  do throws(InvalidTask) {
    try spec.validate()
    return nil
  } catch {
    return error.field
  }
}

struct TaskSpecTests {
  @Test("an ordinary download is valid")
  func acceptsAnOrdinaryDownload() {
    #expect(field { _ in } == nil)
    #expect(
      field {
        $0.headers = [HeaderField(name: "Referer", value: "https://a/")]
        $0.labels = ["title": "Ein Film, größer"]
        $0.after = [UniqueID(high: 3, low: 4)]
      } == nil)
  }

  @Test("validation names the field that is wrong")
  func namesTheFieldThatIsWrong() {
    for url in ["s3://films/a", "storage://default/a", "tus+https://a/b"] {
      #expect(field { $0.notify = url } == "notify")
    }
    #expect(field { $0.after = (1...101).map { UniqueID(high: 3, low: $0) } } == "after")
    #expect(field { $0.headers = (1...33).map { HeaderField(name: "X-\($0)", value: "v") } } == "headers")
    #expect(field { $0.kind = TaskKind(rawValue: "a b") } == "kind")
    #expect(field { $0.source = "ftp://a/b" } == "source")
    #expect(field { $0.source = "storage://default/a" } == "source")
    #expect(field { $0.destination = nil } == "destination")
    #expect(field { $0.destination = "https://a/b" } == "destination")
    #expect(field { $0.destination = "storage://default/../b" } == "destination")
    #expect(field { $0.priority = 1001 } == "priority")
    #expect(field { $0.priority = -1001 } == "priority")
    #expect(field { $0.queue = "" } == "queue")
    #expect(field { $0.queue = "a/b" } == "queue")
    #expect(field { $0.after = [id] } == "after")
    #expect(field { $0.after = [UniqueID(high: 3, low: 4), UniqueID(high: 3, low: 4)] } == "after")
    #expect(field { $0.expect.sha256 = [1] } == "expect.sha256")
    #expect(field { $0.expect.md5 = [1] } == "expect.md5")
    #expect(field { $0.expect.bytes = -1 } == "expect.bytes")
    #expect(field { $0.retry.maxAttempts = 0 } == "maxAttempts")
    #expect(field { $0.retry.intervals = [-1] } == "retryAfter")
    #expect(field { $0.retry.intervals = Array(repeating: 1, count: 101) } == "retryAfter")
    #expect(field { $0.retry.intervals = Array(repeating: 1, count: 100) } == nil)
    #expect(field { $0.rate = 0 } == "rate")
    #expect(field { $0.credential = "a b" } == "credential")
    #expect(field { $0.labels = ["": "x"] } == "labels")
    #expect(field { $0.parameters = [] } == "parameters")
    #expect(field { $0.parameters = [UInt8](repeating: 0x31, count: 65_537) } == "parameters")
    #expect(field { $0.parameters = [UInt8](repeating: 0x31, count: 65_536) } == nil)
    #expect(field { $0.labels = ["x": "\0"] } == "labels")
    #expect(
      field {
        $0.labels = Dictionary(uniqueKeysWithValues: (0..<20).map { ("\($0)", String(repeating: "x", count: 4096)) })
      } == "labels")
  }

  @Test(
    "an error about a URL offers the schemes that are accepted there",
    arguments: [
      (
        .download, "x.mp4", "storage://default/a",
        "not an absolute URL: expected an http://, https:// or s3://BUCKET/KEY URL"
      ),
      (
        .download, "ftp://a/b", "storage://default/a",
        "the scheme \"ftp\" is not supported: expected an http://, https:// or s3://BUCKET/KEY URL"
      ),
      (
        .download, "storage://default/../a", nil,
        "a task of kind download needs an http://, https:// or s3://BUCKET/KEY URL here"
      ),
      (.download, "http://a/b", "a.mp4", "a task of kind download needs a storage://NAME/PATH URL here"),
      (.download, "http://a/b", "http://a b/", "a task of kind download needs a storage://NAME/PATH URL here"),
      (
        .copy, "http://a/b", "a.mp4",
        """
        not an absolute URL: expected an http://, https://, s3://BUCKET/KEY, storage://NAME/PATH, tus+http:// or \
        tus+https:// URL
        """
      ),
      (
        .upload, "https://a/b", "https://a/c", "a task of kind upload needs a storage://NAME/PATH URL here"
      ),
      (
        .upload, "storage://default/a", "storage://default/b",
        """
        a task of kind upload needs an http://, https://, s3://BUCKET/KEY, tus+http:// or tus+https:// URL here
        """
      ),
      (
        .upload, "storage://default/a", "tus://a/files",
        """
        the scheme "tus" is not supported: expected an http://, https://, s3://BUCKET/KEY, tus+http:// or tus+https:// URL
        """
      ),
      (
        .upload, "storage://default/a", nil,
        "a task of kind upload needs an http://, https://, s3://BUCKET/KEY, tus+http:// or tus+https:// URL here"
      ),
      (
        .download, "tus+https://a/files/1", "storage://default/a",
        "a task of kind download needs an http://, https:// or s3://BUCKET/KEY URL here"
      ),
      (
        .copy, "tus+https://a/files/1", "storage://default/a",
        "a task of kind copy needs an http://, https://, s3://BUCKET/KEY or storage://NAME/PATH URL here"
      ),
      (.copy, "s3://films/a", "S3://films/%61", "it is the source itself"),
      (.copy, "storage://default/a", "storage://default/a", "it is the source itself"),
      (.download, "s3://films/a/", "storage://default/a", "its key ends with \"/\": add the object's name"),
      (.upload, "storage://default/a", "s3://films/a/", "its key ends with \"/\": add the object's name"),
      (.upload, "storage://default/a", "s3://films/a?versionId=1", "the store names the version it makes"),
      (.upload, "storage://default/a", "s3://films", "the key is missing: write s3://BUCKET/KEY"),
      (
        .delete, "a.mp4", nil,
        """
        not an absolute URL: expected an http://, https://, s3://BUCKET/KEY, storage://NAME/PATH, tus+http:// or \
        tus+https:// URL
        """
      ),
    ] as [(TaskKind, String, String?, String)])
  func offersTheSchemesThatAreTaken(kind: TaskKind, source: String, destination: String?, message: String) {
    let error = #expect(throws: InvalidTask.self) {
      try TaskSpec(id: id, kind: kind, source: source, destination: destination).validate()
    }
    #expect(error?.message == message)
  }

  @Test(
    "each kind takes its sorts of URLs",
    arguments: [
      (.download, "s3://films/a.mp4?versionId=1", "storage://default/a"),
      (.upload, "storage://default/a", "s3://films/a"), (.upload, "storage://default/a", "https://a/b?sig=1"),
      (.upload, "storage://default/a", "http://a/b"), (.upload, "storage://default/a", "tus+https://a/files/"),
      (.upload, "storage://default/a", "tus+http://a/files"),
      (.copy, "https://a/b", "storage://default/b"), (.copy, "storage://default/a", "storage://default/b"),
      (.copy, "s3://films/a", "tus+https://a/files"), (.copy, "http://a/b", "s3://films/a"),
      (.copy, "s3://films/a?versionId=1", "s3://films/a"), (.copy, "storage://default/a", "https://a/b"),
      (.delete, "storage://default/a", nil), (.delete, "s3://films/a?versionId=1", nil),
      (.delete, "s3://films/a/", nil),
      (.delete, "https://a/b", nil), (.delete, "http://a/b", nil), (.delete, "tus+https://a/files/1", nil),
    ] as [(TaskKind, String, String?)])
  func takesItsSortsOfURLs(kind: TaskKind, source: String, destination: String?) throws {
    try TaskSpec(id: id, kind: kind, source: source, destination: destination).validate()
  }

  @Test(
    "headers that carry secrets or control the request are refused",
    arguments: [
      "Authorization", "COOKIE", "Proxy-Authorization", "Set-Cookie", "X-Api-Key", "X-AuthToken", "MySecret1", "Range",
      "Host", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "Accept-Encoding",
      "Content-Length", "Transfer-Encoding", "TE", "Trailer", "Connection", "Keep-Alive", "Proxy-Connection", "Upgrade",
      "Expect", "a b", "", "Host:", "X:a", "Xé", "X-ApiKey", "X-Password", "X-Passwd", "X-Signature", "X-Credential",
      "X-Authentication", "X-Auth", "X-JWT",
    ])
  func refusesHeaders(name: String) {
    #expect(field { $0.headers = [HeaderField(name: name, value: "v")] } == "headers")
  }

  @Test("a task may have its own Idempotency-Key")
  func takesAnIdempotencyKey() {
    #expect(field { $0.headers = [HeaderField(name: "Idempotency-Key", value: "\"a\"")] } == nil)
  }

  @Test("headers with line breaks and repeated headers are refused")
  func refusesHeaderInjectionAndRepetition() {
    #expect(field { $0.headers = [HeaderField(name: "X", value: "a\r\nCookie: b")] } == "headers")
    #expect(
      field { $0.headers = [HeaderField(name: "X", value: "a"), HeaderField(name: "x", value: "b")] } == "headers")
  }

  @Test(
    "a download without a destination is named after its source",
    arguments: [
      ("https://a/films/My%20film.mp4?sig=1", "storage://default/My film.mp4"),
      ("https://a/100%25", "storage://default/100%25"),
      ("https://a/", "storage://default/\(id)"), ("https://a/..", "storage://default/\(id)"),
      ("https://a/%2e%2e%2fetc", "storage://default/.._etc"),
      ("s3://films/2026/My%20film.mp4?versionId=1", "storage://default/My film.mp4"),
    ])
  func aDownloadGoesToItsSourcesName(source: String, expected: String) throws {
    var spec = TaskSpec(id: id, kind: .download, source: source)
    spec.fillInDestination()
    #expect(spec.destination == expected)
    try spec.validate()
  }
}

struct TaskDifferencesTests {
  @Test("a task differs from another submission in what was asked for, and not in its priority")
  func namesWhatDiffers() {
    let first = TaskSpec(id: id, kind: .noop, source: "https://a/b")
    var second = first
    second.priority = 7
    #expect(first.differences(from: second) == [])
    second.expect.bytes = 1
    second.expect.md5 = [UInt8](repeating: 0, count: 16)
    second.retry.intervals = [5]
    second.parameters = Array("1".utf8)
    #expect(first.differences(from: second) == ["expect", "retryAfter", "parameters"])
  }
}
