import TaskCore
import Testing

struct S3URLTests {
  @Test("an S3 URL is split into bucket, key and version, and its description is the URL again")
  func readsItsParts() throws {
    guard case .s3(let url) = try ResourceURL("S3://My.bucket_1/a%2Fb/ü%3F%25%20.mp4?versionId=x%26y") else {
      Issue.record("not an S3 URL")
      return
    }
    #expect(url.bucket == "My.bucket_1" && url.key == "a/b/ü?% .mp4" && url.versionID == "x&y")
    #expect(url.description == "s3://My.bucket_1/a/b/ü%3F%25%20.mp4?versionId=x%26y")
    #expect(try S3URL(url.description) == url)
    #expect(try ResourceURL(url.description).description == url.description)
    #expect(!url.isFolder)
  }

  @Test(
    "every key goes both ways",
    arguments: ["a", "/", "//a", "a//b", "a/../b", "+", "a\n\u{7F}", "e\u{301}", String(repeating: "x", count: 1024)])
  func keysGoBothWays(key: String) throws {
    let escaped = key.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let url = try S3URL("s3://films/\(escaped)")
    let again = try S3URL(url.description)
    #expect(Array(url.key.utf8) == Array(key.utf8) && url.versionID == nil)
    #expect(again == url && Array(again.key.utf8) == Array(key.utf8))
  }

  @Test("two spellings of one name are two objects")
  func keysAreBytes() throws {
    let composed = try S3URL("s3://films/\u{E9}")
    let decomposed = try S3URL("s3://films/e\u{301}")
    #expect(composed != decomposed && Set([composed, decomposed]).count == 2)
  }

  @Test("a key that ends with a slash is a folder")
  func aSlashMakesAFolder() throws {
    #expect(try S3URL("s3://films/a/").isFolder)
  }

  @Test(
    "an invalid S3 URL is refused with its reason",
    arguments: [
      ("s3://", .s3(.bucket)), ("s3:///a", .s3(.bucket)), ("s3://ab/c", .s3(.bucket)),
      ("s3://a b/c", .character(offset: 6)),
      ("s3://\(String(repeating: "b", count: 256))/c", .s3(.bucket)), ("s3://user@films/a", .s3(.bucket)),
      ("s3://films:9000/a", .s3(.bucket)), ("s3://f%69lms/a", .s3(.bucket)), ("s3://films", .s3(.noKey)),
      ("s3://films/", .s3(.noKey)), ("s3://films?versionId=1", .s3(.noKey)), ("s3://films/a b", .character(offset: 12)),
      ("s3://films/a%00", .encodedNUL(offset: 12)), ("s3://films/a%0", .percentEncoding(offset: 12)),
      ("s3://films/%ff", .s3(.notUTF8)), ("s3://films/a#b", .s3(.fragment)), ("s3://films/a?b", .s3(.query)),
      ("s3://films/a?", .s3(.query)), ("s3://films/a?versionId=1&x=2", .s3(.query)),
      ("s3://films/a?X-Amz-Signature=1", .s3(.query)), ("s3://films/a?versionId=", .s3(.version)),
      ("s3://films/a?versionId=%ff", .s3(.notUTF8)), ("s3://films/a/?versionId=1", .s3(.folderVersion)),
      ("s3://films/a?versionId=\(String(repeating: "v", count: 1025))", .s3(.version)),
      ("s3://films/\(String(repeating: "x", count: 1025))", .s3(.keyTooLong)), ("s3:/films/a", .noScheme),
    ] as [(String, InvalidURL)])
  func refuses(text: String, expected: InvalidURL) {
    #expect(throws: expected) { try ResourceURL(text) }
  }

  @Test("the reasons are different sentences")
  func reasonsDiffer() {
    #expect(Set(InvalidS3URL.allCases.map(\.description)).count == InvalidS3URL.allCases.count)
  }
}

struct TusURLTests {
  @Test("a tus URL has the URL of its server, and its description hides the query")
  func hasItsEndpoint() throws {
    guard case .tus(let url) = try ResourceURL("TUS+HTTPS://Up.Example:8443/files/?token=1") else {
      Issue.record("not a tus URL")
      return
    }
    #expect(try url.endpoint == WebURL("https://up.example:8443/files/?token=1"))
    #expect(url.text == "tus+https://up.example:8443/files/?token=1")
    #expect(try TusURL(url.text) == url)
    #expect(try ResourceURL(url.text).description == "tus+https://up.example:8443/files/?token=***")
    #expect(try TusURL("tus+http://a/").endpoint.scheme == .http)
  }

  @Test(
    "an invalid tus URL is refused with its reason, and with the byte of the whole text",
    arguments: [
      ("tus+ftp://a/", .unsupportedScheme("tus+ftp")), ("tus://a/", .unsupportedScheme("tus")), ("tus+https://", .host),
      ("tus+a", .noScheme), ("tus+http://u@a/", .userinfo), ("tus+http://a/ b", .character(offset: 13)),
      ("tus+http://a/%x", .percentEncoding(offset: 13)), ("tus+http://a/%00", .encodedNUL(offset: 13)),
    ] as [(String, InvalidURL)])
  func refuses(text: String, expected: InvalidURL) {
    #expect(throws: expected) { try ResourceURL(text) }
  }
}

struct TaskTitleTests {
  @Test(
    "a task is named after its destination, or after its source if the destination names no file",
    arguments: [
      ("storage://default/films/a.mp4", "s3://films/2026/b.mp4", "b.mp4"),
      ("storage://default/films/a.mp4", "https://a.example/c.mp4?sig=1", "c.mp4"),
      ("storage://default/films/a.mp4", "tus+https://a.example/files", "a.mp4"),
      ("s3://films/a.mp4?versionId=1", nil, "a.mp4"),
    ] as [(String, String?, String)])
  func namesTheFile(source: String, destination: String?, title: String) {
    let spec = TaskSpec(id: UniqueID(high: 1, low: 2), kind: .upload, source: source, destination: destination)
    let document = TaskDocument(spec: spec, state: .queued, createdAt: Timestamp(microseconds: 0))
    #expect(document.title == title)
  }
}
