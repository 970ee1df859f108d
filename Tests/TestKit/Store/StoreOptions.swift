/// What a ``StoreServer`` is able to do, and how strict it is. Everything may change while it runs.
package struct StoreOptions: Sendable {
  /// S3: the access keys that are let in. Empty: anybody, without a signature too.
  package var accessKeys: Set<String> = ["AKIATEST"]
  package var region = "us-east-1"
  package var minimumPartSize: Int64 = 5 << 20
  /// All parts but the last must have the same size, as on R2.
  package var wantsEqualParts = false
  /// The most entries of one listing.
  package var pageSize = 1000
  package var hasVersions = false
  /// Whether a request about a version is taken for one about the object.
  package var ignoresVersions = false
  /// Whether `If-None-Match` and `If-Match` of a creation are looked at, as on R2.
  package var hasConditionAtCreate = false
  /// The buckets that exist; nil for any.
  package var buckets: Set<String>?
  /// Bodies larger than this are kept as digests only, so that 10 GiB need no memory.
  package var keepsBodiesUpTo: Int64 = 64 << 20
  /// Whether `Expect: 100-continue` gets its answer before the body is read.
  package var honoursExpect = true

  package var tusExtensions = [
    "creation", "creation-with-upload", "creation-defer-length", "checksum", "expiration", "termination",
    "concatenation",
  ]
  package var tusChecksums: [StoreChecksum] = [.sha1, .sha256, .crc32]
  package var tusMaxSize: Int64?
  /// Seconds until an upload expires: what `Upload-Expires` says.
  package var tusExpiresAfter: Int? = 3600

  package init() {}
}
