import Glibc
import LocalFleet
import ReelhaulSystem

/// An nginx that serves files made for a benchmark.
final class BenchOrigin: Sendable {
  let directory: TemporaryDirectory
  private let files: TemporaryDirectory
  private let nginx: NginxOrigin

  private init(directory: TemporaryDirectory, files: TemporaryDirectory, nginx: NginxOrigin) {
    self.directory = directory
    self.files = files
    self.nginx = nginx
  }

  /// `files`: names and sizes in bytes; the contents are pseudo-random.
  /// `rate`: bytes per second and connection, or nil for no limit. `hosts`: how many it is for its clients. `tls`: it
  /// speaks TLS, with a certificate that ``certificate`` names.
  static func start(
    _ files: [(name: String, size: Int)], rate: Int? = nil, hosts: Int = 1, tls: Bool = false
  ) async throws -> BenchOrigin {
    let directory = try TemporaryDirectory(prefix: "reelhaul-origin")
    chmod(directory.path, 0o755)
    var random = SplitMix64(seed: 1)
    var block = [UInt64](repeating: 0, count: 1 << 17)
    for index in block.indices { block[index] = random.next() }
    for (name, size) in files {
      try write(size, to: "\(directory.path)/\(name)", &block, &random)
    }
    let ours = try TemporaryDirectory(prefix: "reelhaul-nginx")
    let certificate = (chain: "\(ours.path)/certificate.pem", key: "\(ours.path)/key.pem")
    if tls {
      try await BenchCommandLine.run(
        "openssl",
        [
          "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=origin", "-addext",
          "subjectAltName=IP:127.0.0.1", "-keyout", certificate.key, "-out", certificate.chain,
        ])
    }
    let nginx = try await NginxOrigin.start(
      serving: directory.path, files: ours.path, rate: rate, hosts: hosts, certificate: tls ? certificate : nil)
    return BenchOrigin(directory: directory, files: ours, nginx: nginx)
  }

  private static func write(
    _ size: Int, to path: String, _ block: inout [UInt64], _ random: inout SplitMix64
  ) throws {
    let file = try FileDescriptor.open(path, O_WRONLY | O_CREAT)
    for offset in stride(from: 0, to: size, by: block.count * 8) {
      // Every block differs from the one before, and every file from the others.
      block[0] = random.next()
      let count = min(size - offset, block.count * 8)
      try block.withUnsafeBytes { try file.write(UnsafeRawBufferPointer(rebasing: $0[..<count]), at: Int64(offset)) }
    }
  }

  /// `host` is counted from 1.
  func url(_ name: String, host: Int = 1) -> String { nginx.url("/\(name)", host: host) }

  /// The PEM file of the authority that signed its certificate: the certificate itself.
  var certificate: String { "\(files.path)/certificate.pem" }

  func stop() async { await nginx.close() }
}
