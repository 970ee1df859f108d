import Testing

@testable import TransferEngine

@Suite struct S3EndpointTests {
  private static func credential(
    _ endpoint: String?, region: String = "eu-west-1", pathStyle: Bool? = nil
  ) -> S3Credential {
    S3Credential(
      accessKeyID: "id", secretAccessKey: "secret", region: region, endpoint: endpoint, pathStyle: pathStyle,
      allowsHTTP: true)
  }

  @Test(
    "the bucket is in the host name or in the path",
    arguments: [
      (credential(nil), "films", "a b/c+d", "https://films.s3.eu-west-1.amazonaws.com/a%20b/c%2Bd"),
      (credential(nil), "my.films", "k", "https://s3.eu-west-1.amazonaws.com/my.films/k"),
      (credential(nil), "Films", "k", "https://s3.eu-west-1.amazonaws.com/Films/k"),
      (credential(nil), "my_films", "k", "https://s3.eu-west-1.amazonaws.com/my_films/k"),
      (credential(nil, pathStyle: true), "films", "k", "https://s3.eu-west-1.amazonaws.com/films/k"),
      (credential(nil, region: "cn-north-1"), "films", "k", "https://films.s3.cn-north-1.amazonaws.com.cn/k"),
      (credential("http://store.example:9000"), "films", "k", "http://store.example:9000/films/k"),
      (credential("http://store.example:80/"), "films", "k", "http://store.example/films/k"),
      (credential("https://Store.Example:443", pathStyle: false), "films", "k", "https://films.store.example/k"),
      (credential("https://store.example:8443", pathStyle: false), "films", "k", "https://films.store.example:8443/k"),
      (credential("https://store.example/storage/v1/s3"), "films", "k", "https://store.example/storage/v1/s3/films/k"),
      (credential("http://127.0.0.1:9000", pathStyle: false), "films", "k", "http://127.0.0.1:9000/films/k"),
      (credential("http://[::1]:9000", pathStyle: false), "films", "k", "http://[::1]:9000/films/k"),
      (credential(nil), "films", "/a//b/../c/.", "https://films.s3.eu-west-1.amazonaws.com//a//b/../c/."),
      (credential(nil), "films", "é%2F~", "https://films.s3.eu-west-1.amazonaws.com/%C3%A9%252F~"),
    ])
  func urls(credential: S3Credential, bucket: String, key: String, url: String) throws {
    #expect(try S3Endpoint(credential, bucket: bucket, key: key).url() == url)
  }

  @Test("a bucket has a URL, and a query is sorted and encoded")
  func bucketsAndQueries() throws {
    let virtual = try S3Endpoint(Self.credential(nil), bucket: "films", key: nil)
    #expect(
      virtual.url(["uploads": "", "prefix": "a/b c+"])
        == "https://films.s3.eu-west-1.amazonaws.com/?prefix=a%2Fb%20c%2B&uploads=")
    let path = try S3Endpoint(Self.credential("http://s:9000"), bucket: "films", key: nil)
    #expect(path.url(["a-b": "1", "a": "2", "a": "1"]) == "http://s:9000/films?a=1&a=2&a-b=1")
  }

  @Test(
    "what is no bucket, key or endpoint is refused",
    arguments: [
      (credential(nil), "", "k"), (credential(nil), "..", "k"), (credential(nil), "a/b", "k"),
      (credential(nil), "a@b", "k"), (credential(nil), "a b", "k"), (credential(nil), "films", ""),
      (credential(nil), "films", String(repeating: "é", count: 513)), (credential("ftp://s"), "films", "k"),
      (credential("https://u:p@s"), "films", "k"), (credential("https://s/?a"), "films", "k"),
      (credential("s:9000"), "films", "k"), (credential(""), "films", "k"),
    ])
  func refusals(credential: S3Credential, bucket: String, key: String) {
    #expect(throws: InvalidS3Location.self) { try S3Endpoint(credential, bucket: bucket, key: key) }
  }

  @Test("an endpoint without TLS is refused unless it is allowed")
  func withoutTLS() throws {
    var credential = Self.credential("http://s")
    _ = try S3Endpoint(credential, bucket: "films", key: "k")
    credential.allowsHTTP = false
    #expect(throws: InvalidS3Location.self) { try S3Endpoint(credential, bucket: "films", key: "k") }
  }

  @Test("botocore requests the same URLs")
  func botocoreRequestsTheSame() throws {
    var (cases, expected): ([[String: String]], [String]) = ([], [])
    for (index, key) in ReferenceCases.keys(400, seed: 7).enumerated() {
      let (bucket, region) = (["films", "my.films", "a-b-1"][index % 3], ["eu-west-1", "cn-north-1"][index % 2])
      let endpoint = [nil, "http://127.0.0.1:9000", "https://store.example", nil][index % 4]
      let credential = Self.credential(endpoint, region: region)
      expected.append(try S3Endpoint(credential, bucket: bucket, key: key).url())
      cases.append([
        "bucket": ReferenceCases.quoted(bucket), "key": ReferenceCases.quoted(key),
        "region": ReferenceCases.quoted(region), "endpoint": ReferenceCases.quoted(endpoint ?? ""),
        "pathStyle": "\(credential.pathStyle)",
      ])
    }
    let answers = try ReferenceCases.answers("s3-urls.py", cases)
    #expect(answers == expected)
  }
}
