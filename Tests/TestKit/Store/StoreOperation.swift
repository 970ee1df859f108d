/// What a request to a ``StoreServer`` asks for.
package enum StoreOperation: String, Sendable {
  // S3
  case putObject, copyObject, getObject, headObject, deleteObject, deleteObjects, listObjects, listVersions
  case createUpload, uploadPart, uploadPartCopy, listParts, completeUpload, abortUpload, listUploads
  case createBucket, headBucket, deleteBucket, listBuckets
  // tus
  case tusOptions, tusCreate, tusHead, tusPatch, tusDelete, tusGet
  // Plain HTTP
  case put, post, get, head, delete

  case unknown

  var isS3: Bool { ![.unknown, .put, .post, .get, .head, .delete].contains(self) && !isTus }
  var isTus: Bool { rawValue.hasPrefix("tus") }

  /// Whether the body is content, and not XML.
  package var hasContent: Bool { [.putObject, .uploadPart, .put, .post, .tusCreate, .tusPatch].contains(self) }

  init(_ request: StoreRequest) {
    let (method, query) = (request.method, request.query)
    if request.key == "tus" || request.key.hasPrefix("tus/") {
      let methods: [String: StoreOperation] = [
        "OPTIONS": .tusOptions, "POST": .tusCreate, "HEAD": .tusHead, "PATCH": .tusPatch, "DELETE": .tusDelete,
        "GET": .tusGet,
      ]
      self = methods[method] ?? .unknown
    } else if request.key.hasPrefix("put/") {
      self = StoreOperation(rawValue: method.lowercased()) ?? .unknown
    } else if request.objectKey.isEmpty {
      switch method {
      case "PUT": self = .createBucket
      case "HEAD": self = .headBucket
      case "DELETE": self = .deleteBucket
      case "POST": self = query["delete"] != nil ? .deleteObjects : .unknown
      case "GET":
        self =
          request.bucket.isEmpty
          ? .listBuckets
          : query["uploads"] != nil ? .listUploads : query["versions"] != nil ? .listVersions : .listObjects
      default: self = .unknown
      }
    } else {
      let copies = request["x-amz-copy-source"] != nil
      switch method {
      case "PUT" where query["uploadId"] != nil: self = copies ? .uploadPartCopy : .uploadPart
      case "PUT": self = copies ? .copyObject : .putObject
      case "POST" where query["uploads"] != nil: self = .createUpload
      case "POST" where query["uploadId"] != nil: self = .completeUpload
      case "GET": self = query["uploadId"] != nil ? .listParts : .getObject
      case "HEAD": self = .headObject
      case "DELETE": self = query["uploadId"] != nil ? .abortUpload : .deleteObject
      default: self = .unknown
      }
    }
  }
}
