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
}

extension StoreServer {
  package var account: S3Account { S3Account(endpoint: url()) }
}
