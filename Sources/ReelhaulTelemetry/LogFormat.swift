/// The format of a log line.
package enum LogFormat: Sendable {
  /// `ts=… level=info msg="…" key=value`
  case logfmt
  /// `{"ts":"…","level":"info","msg":"…","key":"value"}`
  case json
  /// logfmt without a time, after the journal's priority: `<6>msg="…"`
  case journal
}
