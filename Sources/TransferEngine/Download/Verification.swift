import ReelhaulCodec

/// What proved that a body is whole although only the end of its connection ended it, or that it is of one version
/// although its validators differ from those of the next answer.
package enum Verification: String, Hashable, Sendable {
  /// Expected by the task.
  case sha256, md5, bytes
  /// The boxes of an MP4 or QuickTime file add up: ``MediaBoxes``.
  case container
  /// A second body had the same length and the same SHA-256.
  case twoFetches = "two_fetches"

  /// The output of a download that needed a proof.
  package var output: [UInt8] {
    JSONWriter.write { json in json.object { $0.member("verified", rawValue) } }
  }
}
