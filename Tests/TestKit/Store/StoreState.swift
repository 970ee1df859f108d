import Glibc

/// What a ``StoreServer`` holds.
struct StoreState {
  /// A version of a key; without an object it is a delete marker.
  struct Version {
    var id: String
    var object: StoreObject?
  }

  var options = StoreOptions()
  /// By key, the newest last. A store without versions has one of each.
  var versions: [String: [Version]] = [:]
  var uploads: [String: StoreUpload] = [:]
  /// Credentials that have ended.
  var expired: Set<String> = []
  private var last = 0

  var objects: [String: StoreObject] { versions.compactMapValues { $0.last?.object } }

  func object(_ key: String, version: String? = nil) -> StoreObject? {
    guard let version, !options.ignoresVersions else { return versions[key]?.last?.object }
    return versions[key]?.first { $0.id == version }?.object
  }

  /// A number that no other call returns.
  mutating func next() -> Int {
    last += 1
    return last
  }

  /// Keeps `object` and returns it with its version and date.
  mutating func put(_ key: String, _ object: StoreObject) -> StoreObject {
    var object = object
    object.modified = time(nil)
    let id = options.hasVersions ? "v\(next())" : "null"
    object.versionID = options.hasVersions ? id : nil
    let version = Version(id: id, object: object)
    if options.hasVersions { versions[key, default: []].append(version) } else { versions[key] = [version] }
    return object
  }

  /// Removes an object, or puts a delete marker. Returns the version removed or made, and whether it is a marker.
  mutating func delete(_ key: String, version: String? = nil) -> (version: String?, isMarker: Bool) {
    if let version, !options.ignoresVersions {
      let removed = versions[key]?.first { $0.id == version }
      versions[key]?.removeAll { $0.id == version }
      if versions[key]?.isEmpty == true { versions[key] = nil }
      return (version, removed.map { $0.object == nil } ?? false)
    }
    guard options.hasVersions else {
      versions[key] = nil
      return (nil, false)
    }
    let id = "v\(next())"
    versions[key, default: []].append(Version(id: id, object: nil))
    return (id, true)
  }

  /// A new upload, whose id says nothing about its key.
  mutating func open(_ key: String?) -> StoreUpload {
    let ordinal = next()
    let id = "up\(ordinal)x\(String(UInt32.random(in: 0 ... .max), radix: 36))"
    var upload = StoreUpload(id: id, key: key ?? "tus/\(id)")
    upload.ordinal = ordinal
    upload.created = time(nil)
    uploads[id] = upload
    return upload
  }

  /// Whether the conditions of `request` on the present object hold; else the answer.
  func precondition(_ request: StoreRequest, _ key: String) -> OriginResponse? {
    let present = object(key)
    if let match = request["if-none-match"], let present, match == "*" || match == present.etag {
      return StoreXML.error(412, "PreconditionFailed", "At least one of the preconditions did not hold")
    }
    if let match = request["if-match"] {
      guard let present else { return StoreXML.error(404, "NoSuchKey", "The specified key does not exist.") }
      guard match == "*" || match == present.etag else {
        return StoreXML.error(412, "PreconditionFailed", "At least one of the preconditions did not hold")
      }
    }
    return nil
  }
}
