import ReelhaulMessages
import TaskCore

/// What is at a destination.
package struct UploadedObject: Hashable, Sendable {
  package var size: Int64?
  package var etag: String?
  package var versionID: String?
  /// Of all its bytes, in the form of the protocol.
  package var checksum: String?
  /// Of all its bytes, in hexadecimal digits, if the entity tag is one.
  package var md5: String?
  /// Where it is, if the server chose the place.
  package var location: String?
  /// The task that uploaded it, and of which version of its source, if the object says so.
  package var owner: Owner?
  /// What proved that its bytes are those of the source.
  package var verified: UploadOutput.Verified
  /// What is not guaranteed, for people.
  package var remark: String?

  package struct Owner: Hashable, Sendable {
    package var task: UniqueID
    /// A digest of what tells the version from others. A generation does not: a task that was canceled counts them anew.
    /// Nil of an upload that a worker of an earlier version began.
    package var version: String?

    package init(task: UniqueID, version: String?) {
      self.task = task
      self.version = version
    }
  }

  package init(
    size: Int64? = nil, etag: String? = nil, versionID: String? = nil, location: String? = nil, owner: Owner? = nil,
    verified: UploadOutput.Verified = .none, remark: String? = nil
  ) {
    self.size = size
    self.etag = etag
    self.versionID = versionID
    self.location = location
    self.owner = owner
    self.verified = verified
    self.remark = remark
  }
}

/// What a server has of an upload.
package enum UploadStanding: Sendable {
  /// The server does not know the upload any more.
  case gone
  /// The server does not tell what it has of it, if it knows it.
  case untold
  /// It has these whole segments, and so many bytes of others.
  case open([Int: UploadReceipt], partial: [Int: Int64] = [:])
  /// The upload is finished.
  case finished(UploadedObject)
}

/// What a server said of a whole segment.
package struct UploadReceipt: Hashable, Sendable {
  package var segment: Int
  package var etag: String
  /// What proved that the server has these bytes; nil if nothing did.
  package var verified: UploadOutput.Verified?
  /// Of the bytes that were sent, or compared, if it was computed.
  package var crc32c: UInt32?
  /// Of the file, if the segment is all of it.
  package var versionID: String?
  /// Where the file is, if the segment is all of it and the server chose the place.
  package var location: String?

  /// What the server has made of a segment that is the whole file.
  var object: UploadedObject { UploadedObject(etag: etag, versionID: versionID) }

  package init(
    segment: Int, etag: String = "", verified: UploadOutput.Verified? = nil, crc32c: UInt32? = nil,
    versionID: String? = nil, location: String? = nil
  ) {
    self.segment = segment
    self.etag = etag
    self.verified = verified
    self.crc32c = crc32c
    self.versionID = versionID
    self.location = location
  }
}
