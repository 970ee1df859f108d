/// Something that can be measured.
struct Benchmark: Sendable {
  var name: String
  /// One line, without a full stop.
  var summary: String
  /// Measures, and prints what came out.
  var run: @Sendable (Context) async throws -> Void

  static let all: [Benchmark] = [.engine, .largeFile, .smallFiles, .batch, .noop, .memory]
}
