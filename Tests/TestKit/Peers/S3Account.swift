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

  /// Writes a file of credentials, in which `name` has these keys.
  package func writeCredentials(as name: String = "s3", to path: String) throws {
    let keys = #""accessKeyId": "\#(accessKeyID)", "secretAccessKey": "\#(secretAccessKey)""#
    let s3 = #"{\#(keys), "region": "\#(region)", "endpoint": "\#(endpoint)"}"#
    try TextFile.write(#"{"\#(name)": {"s3": \#(s3), "allowHTTP": true}}"#, to: path, mode: 0o600)
  }
}

extension StoreServer {
  package var account: S3Account { S3Account(endpoint: url()) }
}
