import ReelhaulSystem

/// The `curl` program, one request at a time.
package enum CurlCommand {
  package struct Answer: Sendable {
    /// curl's exit code: 0, 52 for an empty answer, 55 and 56 for a connection that ended.
    package var exit: Int32
    /// The last status; 0 if there was none.
    package var status: Int
    /// The head of the last answer.
    package var head: String
    package var body: [UInt8]

    package var text: String { String(decoding: body, as: UTF8.self) }

    /// A header field of the last answer.
    package subscript(name: String) -> String? {
      for line in head.split(separator: "\r\n") {
        let sides = line.split(separator: ":", maxSplits: 1)
        if sides.count == 2, sides[0].lowercased() == name.lowercased() { return String(sides[1].drop { $0 == " " }) }
      }
      return nil
    }
  }

  package static func run(_ arguments: String...) async throws -> Answer {
    let directory = try TemporaryDirectory(prefix: "reelhaul-curl")
    var options = ChildProcess.Options()
    options.stdout = "\(directory.path)/status"
    let files = ["-sS", "-o", "\(directory.path)/body", "-D", "\(directory.path)/head", "-w", "%{http_code}"]
    options.stderr = "\(directory.path)/errors"
    let status = await (try ChildProcess("curl", ["-q"] + files + arguments, options)).wait()
    guard case .exited(let exit) = status else { throw TestFleetError("curl: \(status)") }
    let head = (try? TextFile.read("\(directory.path)/head")) ?? ""
    let last = head.split(separator: "\r\n\r\n").last.map(String.init) ?? ""
    let body = (try? TextFile.bytes(of: "\(directory.path)/body", limit: 1 << 30)) ?? []
    let number = try TextFile.read("\(directory.path)/status")
    return Answer(exit: exit, status: Int(number) ?? 0, head: last, body: body)
  }
}
