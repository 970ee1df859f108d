/// tuspy.
package enum TusReference {
  /// Uploads `file` and returns the URL of the upload.
  package static func upload(
    _ file: String, to url: String, chunkSize: Int = 1 << 20, metadata: [String: String] = [:]
  ) async throws -> String {
    let pairs = metadata.map { "\($0)=\($1)" }
    return try await run("upload", [url, file, "\(chunkSize)"] + pairs)
  }

  /// How much the server has of the upload at `url`.
  package static func offset(_ url: String) async throws -> Int64? {
    Int64(try await run("offset", [url]))
  }

  private static func run(_ command: String, _ arguments: [String]) async throws -> String {
    try await ReferenceProgram.run("tus.py", [command] + arguments).last ?? ""
  }
}
