import ReelhaulSystem

/// Certificates that the `openssl` command makes for this process: an authority, and servers with and without its
/// signature.
package final class TestCertificates: Sendable {
  package enum Server: String, Sendable, CaseIterable {
    /// For `localhost` and 127.0.0.1.
    case valid
    case expired
    /// The certificate is for another host.
    case misnamed
    /// An unknown authority has signed it.
    case unknown
  }

  /// The certificates of this process.
  package static let shared = Result { try TestCertificates() }

  /// The authority's certificate.
  package let authority: String
  private let directory: TemporaryDirectory

  private init() throws {
    let directory = try TemporaryDirectory(prefix: "reelhaul-certificates")
    self.directory = directory
    authority = "\(directory.path)/authority.pem"
    atTestExit { removeTree(directory.path) }
    for name in ["authority", "stranger"] {
      try openssl(
        ["req", "-x509", "-days", "2", "-out", "\(name).pem", "-addext", "keyUsage=critical,keyCertSign"] + key(name))
    }
    for server in Server.allCases {
      let hosts = server == .misnamed ? "DNS:elsewhere.example" : "DNS:localhost,IP:127.0.0.1"
      try openssl(
        ["req", "-new", "-out", "\(server).csr", "-addext", "subjectAltName=\(hosts)"] + key("\(server)"))
      let signer = server == .unknown ? "stranger" : "authority"
      try openssl([
        "x509", "-req", "-in", "\(server).csr", "-out", "\(server).pem", "-CA", "\(signer).pem", "-CAkey",
        "\(signer).key", "-days", server == .expired ? "-1" : "2", "-copy_extensions", "copy",
      ])
    }
  }

  package func certificate(of server: Server) -> String { "\(directory.path)/\(server).pem" }
  package func key(of server: Server) -> String { "\(directory.path)/\(server).key" }

  private func key(_ name: String) -> [String] {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    return curve + ["-keyout", "\(name).key", "-subj", "/CN=\(name)"]
  }

  private func openssl(_ arguments: [String]) throws {
    var options = ChildProcess.Options()
    options.workingDirectory = directory.path
    options.stdout = "\(directory.path)/log"
    options.stderr = options.stdout
    let status = try ChildProcess("openssl", arguments, options).waitBlocking()
    guard status == .exited(0) else {
      let log = try String(decoding: TestFleet.contents("\(directory.path)/log"), as: UTF8.self)
      throw TestFleetError("openssl \(arguments.joined(separator: " ")): \(status)\n\(log)")
    }
  }
}
