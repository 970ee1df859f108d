import Glibc
import ReelhaulSystem

/// Where an S3 is, and who comes.
package struct S3Account: Sendable {
  /// `http://127.0.0.1:PORT`
  package var endpoint: String
  package var region = "us-east-1"
  package var accessKeyID = "AKIATEST"
  package var secretAccessKey = "a-secret-for-tests"
  package var sessionToken: String?

  package init(endpoint: String) {
    self.endpoint = endpoint
  }

  /// Writes a file of credentials, in which `name` has these keys; a reader sees the former file or the new one.
  package func writeCredentials(as name: String = "s3", to path: String) throws {
    let token = sessionToken.map { #", "sessionToken": "\#($0)""# } ?? ""
    let keys = #""accessKeyId": "\#(accessKeyID)", "secretAccessKey": "\#(secretAccessKey)""#
    let s3 = #"{\#(keys), "region": "\#(region)", "endpoint": "\#(endpoint)"\#(token)}"#
    try TextFile.write(#"{"\#(name)": {"s3": \#(s3), "allowHTTP": true}}"#, to: "\(path).new", mode: 0o600)
    guard rename("\(path).new", path) == 0 else { throw SystemError.last("rename") }
  }
}

extension StoreServer {
  package var account: S3Account { S3Account(endpoint: url()) }
}
