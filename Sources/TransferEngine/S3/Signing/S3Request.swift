import TaskCore

/// What is signed of a request to S3.
package struct S3Request: Hashable, Sendable {
  /// In upper case: `PUT`.
  package var method: String
  /// The value of the field `Host`, with the port if it is not the scheme's own.
  package var host: String
  /// Percent-encoded, exactly as it is sent.
  package var path: String
  package var query: S3Query
  /// The fields that are sent and signed. All `x-amz-` fields must be among them.
  package var headers: [HeaderField]

  package init(method: String, host: String, path: String, query: S3Query = [:], headers: [HeaderField] = []) {
    self.method = method
    self.host = host
    self.path = path
    self.query = query
    self.headers = headers
  }

  /// A request to the object or bucket of an endpoint.
  package init(_ method: String, _ endpoint: S3Endpoint, query: S3Query = [:], headers: [HeaderField] = []) {
    self.init(method: method, host: endpoint.authority, path: endpoint.path, query: query, headers: headers)
  }
}
