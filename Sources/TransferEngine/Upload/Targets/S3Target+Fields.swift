import ReelhaulMessages
import TaskCore

/// What an object is made with.
extension S3Target {
  static let checksumField = "x-amz-checksum-crc32c"
  static let wholeChecksum = HeaderField(name: "x-amz-checksum-type", value: "FULL_OBJECT")

  /// The header fields of the request that makes the object. A copy of an object of S3 has what its source has, but for
  /// what the task says.
  func objectFields(_ upload: UploadOrder) -> [HeaderField] {
    var fields = [
      HeaderField(name: "x-amz-meta-reelhaul-task", value: "\(upload.task)"),
      HeaderField(name: "x-amz-meta-reelhaul-generation", value: "\(upload.generation)"),
      HeaderField(name: "x-amz-meta-reelhaul-version", value: upload.owner.version ?? ""),
    ]
    if let storageClass = parameters.storageClass {
      fields.append(HeaderField(name: "x-amz-storage-class", value: storageClass))
    }
    for (name, value) in parameters.metadata.sorted(by: { $0.key < $1.key }) {
      fields.append(HeaderField(name: "x-amz-meta-\(name)", value: value))
    }
    if let type = parameters.contentType { fields.append(HeaderField(name: "Content-Type", value: type)) }
    fields += self.fields
    let named = Set(fields.map { $0.name.lowercased() })
    var found = upload.body.source.properties.filter { !named.contains($0.name) }
    // Stores refuse more metadata than this.
    if Self.metadataBytes(fields + found) > UploadParameters.metadataLimit { found.removeAll(where: Self.isMetadata) }
    fields += found
    if !fields.contains(where: { $0.name.lowercased() == "content-type" }) {
      fields.append(HeaderField(name: "Content-Type", value: "application/octet-stream"))
    }
    return fields
  }

  private static func isMetadata(_ field: HeaderField) -> Bool { field.name.hasPrefix(metadataPrefix) }

  private static func metadataBytes(_ fields: [HeaderField]) -> Int {
    fields.filter(isMetadata).reduce(0) { $0 + $1.name.utf8.count - metadataPrefix.utf8.count + $1.value.utf8.count }
  }

  private static let metadataPrefix = "x-amz-meta-"
}
