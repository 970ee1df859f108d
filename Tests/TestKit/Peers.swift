import ReelhaulSystem

/// The Python of `deploy/peers.sh`, with the packages of others that tests compare with.
public enum Peers {
  private static let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()

  /// The path of the interpreter. Installs the packages first if they are missing. Blocks.
  public static func python() throws -> String {
    let made = try ProgramOutput.run("\(root)/deploy/peers.sh", [], limit: 1 << 20, timeout: .seconds(300))
    guard made.status == .exited(0) else { throw Failure(made) }
    return "\(root)/.build/peers/bin/python"
  }

  /// What a program printed. Fails if it failed.
  public static func run(_ program: String, _ arguments: [String]) throws -> [UInt8] {
    let output = try ProgramOutput.run(program, arguments, limit: 64 << 20, timeout: .seconds(300))
    guard output.status == .exited(0) else { throw Failure(output) }
    return output.output
  }

  private struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ output: ProgramOutput) {
      description = "\(output.status): \(String(decoding: output.errors, as: UTF8.self))"
    }
  }
}
