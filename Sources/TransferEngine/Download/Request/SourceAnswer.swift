import TaskCore

/// What the head of a response says about the source, after all redirects.
enum SourceAnswer: Hashable {
  /// The body is this part of the source, to the byte.
  case part(Range<Int64>, of: SourceIdentity)
  /// The body is the whole source from its start. If `isDelimited` is true, a body that was cut short can be detected.
  case whole(SourceIdentity, isDelimited: Bool)
  /// The source has another version than the requested one.
  case changed(IdentityMismatch)
  /// The server does not send the range: ask again without `If-Range`, then without a range.
  case unranged
  /// The head does not prove what the body is. `ofRange`: the whole may come right.
  case refused(TaskFailure, ofRange: Bool = false)
  /// A status that reports a failure.
  case status(TaskFailure)
  /// A redirect that is not followed, or another version of an object than the one that was asked for.
  case misdirected(TaskFailure)
}

/// What the receiver does with an answer's body.
enum Reception: Hashable {
  /// Writes it from `offset` on: exactly `count` bytes, or all bytes if `count` is `nil`.
  case write(offset: Int64, count: Int64?)
  /// Only compares it with the bytes that are written: exactly `count`.
  case compare(count: Int64)
  /// Ignores it. A short body is still read, so that the connection can be used again.
  case skip
  /// Closes the connection.
  case refuse
}

/// Why an answer ended before its body was whole.
struct Interruption: Hashable {
  var failure: TaskFailure
  /// Whether the receiver itself ended the transfer.
  var isOwn: Bool
}
