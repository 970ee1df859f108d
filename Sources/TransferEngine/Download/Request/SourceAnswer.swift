import ReelhaulCurl
import TaskCore

/// Where a request goes.
struct Place: Hashable, Sendable {
  /// An absolute http or https URL, normalised.
  var url: String
  /// True if every redirect so far stayed on the source's own server. The task's own header fields go only there.
  var isAtOrigin: Bool

  /// The server that it names, as ``HostConnections`` counts.
  var server: String { CurlURL(url)?.server ?? url }
}

/// What the head of an answer tells of the source, after all redirects.
enum SourceAnswer: Hashable {
  /// The body is this part of the source, to the byte.
  case part(Range<Int64>, of: SourceIdentity)
  /// The body is the whole source from its start. `isDelimited`: a body that is cut short can be told from a whole one.
  case whole(SourceIdentity, isDelimited: Bool)
  /// The source is another version than the one asked for.
  case changed(IdentityMismatch)
  /// The server does not send the range: ask anew, without `If-Range` or without a range.
  case unranged
  /// The answer proves nothing.
  case refused(TaskFailure)
  /// A status that is no success.
  case status(TaskFailure)
  /// A redirect that is not followed.
  case misdirected(TaskFailure)
}

/// What becomes of an answer's body.
enum Reception: Hashable {
  /// Written from `offset` on; exactly `count` bytes, or whatever comes.
  case write(offset: Int64, count: Int64?)
  /// Nobody wants it; read it where that is cheap, to keep the connection.
  case skip
  /// The connection is closed.
  case refuse
}

/// Why an answer ended before its body was whole.
struct Interruption: Hashable {
  var failure: TaskFailure
  /// The receiver took no more.
  var isOwn: Bool
}
