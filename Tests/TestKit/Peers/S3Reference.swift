/// boto3, which reads back what the product has sent, and sends what it reads.
package struct S3Reference: Sendable {
  package struct Object: Sendable {
    package var sha256: String
    package var size: Int64
    package var etag: String
    package var contentType: String
    package var storageClass: String
    package var metadata: [String: String]
  }

  package let account: S3Account

  package init(_ account: S3Account) {
    self.account = account
  }

  /// A command of `Tests/Reference/s3.py`. Returns the rows that it printed.
  @discardableResult
  package func run(_ command: String, _ arguments: String...) async throws -> [[String]] {
    try await run(command, arguments)
  }

  @discardableResult
  package func run(_ command: String, _ arguments: [String]) async throws -> [[String]] {
    var environment = [
      "S3_ENDPOINT": account.endpoint, "AWS_ACCESS_KEY_ID": account.accessKeyID,
      "AWS_SECRET_ACCESS_KEY": account.secretAccessKey, "AWS_DEFAULT_REGION": account.region,
      "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    ]
    environment["AWS_SESSION_TOKEN"] = account.sessionToken
    return try await ReferenceProgram.run("s3.py", [command] + arguments, environment: environment).map {
      $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    }
  }

  package func createBucket(_ bucket: String) async throws { try await run("create_bucket", bucket) }

  /// - Parameter partSize: nil for one PUT.
  package func put(_ bucket: String, _ key: String, file: String, partSize: Int? = nil) async throws {
    try await run("put", bucket, key, file, "\(partSize ?? 0)")
  }

  package func get(_ bucket: String, _ key: String) async throws -> Object {
    let rows = try await run("get", bucket, key)
    let fields = Dictionary(rows.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 })
    var metadata: [String: String] = [:]
    for (name, value) in fields where name.hasPrefix("x-amz-meta-") { metadata[String(name.dropFirst(11))] = value }
    return Object(
      sha256: fields["sha256"] ?? "", size: fields["size"].flatMap { Int64($0) } ?? -1, etag: fields["etag"] ?? "",
      contentType: fields["contentType"] ?? "", storageClass: fields["storageClass"] ?? "", metadata: metadata)
  }

  /// The keys, in order.
  package func list(_ bucket: String, prefix: String = "") async throws -> [String] {
    try await run("list_objects", bucket, prefix).map { $0[0] }
  }

  /// The keys and ids of the open uploads.
  package func uploads(_ bucket: String) async throws -> [(key: String, id: String)] {
    try await run("list_uploads", bucket).map { ($0[0], $0[1]) }
  }

  package func delete(_ bucket: String, _ keys: String...) async throws { try await run("delete", [bucket] + keys) }
}
