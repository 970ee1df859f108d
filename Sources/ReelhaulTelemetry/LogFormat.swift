/// How a line is written.
package enum LogFormat: Sendable {
  /// `ts=… level=info msg="…" key=value`
  case logfmt
  /// `{"ts":"…","level":"info","msg":"…","key":"value"}`
  case json
  /// logfmt without a time, behind the journal's priority: `<6>msg="…"`
  case journal
}
