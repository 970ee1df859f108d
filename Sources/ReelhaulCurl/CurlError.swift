import CReelhaulCurl

/// Why a transfer ended without a complete response.
package struct CurlError: Error, Hashable, Sendable {
  /// A stable word for programs and metrics. The set is open: libcurl's rarer results are `curl_<number>`.
  package struct Code: Hashable, Sendable {
    package let name: String

    package init(name: String) {
      self.name = name
    }

    /// The policy does not permit the resolved address.
    package static let addressRefused = Code(name: "address_refused")
    /// The calling task was canceled, or the client closed.
    package static let canceled = Code(name: "canceled")
    /// The handler answered ``CurlVerdict/abort``.
    package static let aborted = Code(name: "aborted")
    /// The response's head exceeds the limit of fields or bytes.
    package static let headTooLarge = Code(name: "head_too_large")
    /// The URL, its scheme or a header field cannot be sent.
    package static let badRequest = Code(name: "bad_request")
    /// The response is not HTTP.
    package static let badResponse = Code(name: "bad_response")
    package static let resolveFailed = Code(name: "resolve_failed")
    package static let connectFailed = Code(name: "connect_failed")
    /// A deadline passed, or the transfer stayed below its lowest speed.
    package static let timedOut = Code(name: "timed_out")
    package static let tlsFailed = Code(name: "tls_failed")
    /// No trusted authority has signed the server's certificate.
    package static let certificateUntrusted = Code(name: "certificate_untrusted")
    /// The server's certificate has expired or is not valid yet.
    package static let certificateExpired = Code(name: "certificate_expired")
    /// The server's certificate is for another host.
    package static let certificateMisnamed = Code(name: "certificate_misnamed")
    /// The file of trusted certificates cannot be used. This host is the cause, not the server.
    package static let caFile = Code(name: "ca_file_unusable")
    /// The connection ended before the announced length.
    package static let cut = Code(name: "connection_cut")
    /// The connection ended before a response began.
    package static let noResponse = Code(name: "no_response")
    package static let sendFailed = Code(name: "send_failed")
    package static let receiveFailed = Code(name: "receive_failed")
    package static let outOfResources = Code(name: "out_of_resources")
  }

  package var code: Code
  /// Whether the same request may succeed later.
  package var isRetryable: Bool
  /// A message for people. It names at most the host, never the URL's query.
  package var message: String
  /// For ``Code/addressRefused``: the addresses, each the bytes of a `sockaddr`.
  package var refusedAddresses: [[UInt8]] = []

  package init(_ code: Code, isRetryable: Bool = false, message: String) {
    self.code = code
    self.isRetryable = isRetryable
    self.message = message
  }
}

extension CurlError: CustomStringConvertible {
  package var description: String { "\(code.name): \(message)" }
}

extension CurlError {
  /// From libcurl's result. `detail` is libcurl's own sentence about the failure, or empty.
  init(result: CURLcode, detail: String) {
    let kind = Self.kinds[result.rawValue] ?? (Code(name: "curl_\(result.rawValue)"), false)
    let sentence = String(cString: curl_easy_strerror(result))
    self.init(
      kind.0, isRetryable: kind.1, message: detail.isEmpty ? sentence : detail)
  }

  /// The certificate was refused. `verdict` is OpenSSL's number for the fault in the chain of signatures. If only the
  /// name is wrong, libcurl has not asked for the verdict yet, and it is 1.
  static func certificate(verdict: Int, detail: String) -> CurlError {
    let code: Code =
      switch verdict {
      case 0, 1: .certificateMisnamed
      case 9, 10: .certificateExpired
      default: .certificateUntrusted
      }
    let other = code == .certificateExpired ? "; or the worker's clock is wrong" : ""
    return CurlError(code, message: detail + other)
  }

  static func multi(_ result: CURLMcode) -> CurlError {
    CurlError(.outOfResources, isRetryable: true, message: String(cString: curl_multi_strerror(result)))
  }

  /// The code and `isRetryable` for each result of libcurl.
  private static let kinds: [UInt32: (Code, Bool)] = [
    CURLE_UNSUPPORTED_PROTOCOL.rawValue: (.badRequest, false),
    CURLE_URL_MALFORMAT.rawValue: (.badRequest, false),
    CURLE_COULDNT_RESOLVE_PROXY.rawValue: (.resolveFailed, true),
    CURLE_COULDNT_RESOLVE_HOST.rawValue: (.resolveFailed, true),
    CURLE_COULDNT_CONNECT.rawValue: (.connectFailed, true),
    CURLE_WEIRD_SERVER_REPLY.rawValue: (.badResponse, true),
    CURLE_HTTP2.rawValue: (.receiveFailed, true),
    CURLE_PARTIAL_FILE.rawValue: (.cut, true),
    CURLE_OUT_OF_MEMORY.rawValue: (.outOfResources, true),
    // A socket cannot be watched; what this program aborts has a failure of its own.
    CURLE_ABORTED_BY_CALLBACK.rawValue: (.outOfResources, true),
    CURLE_OPERATION_TIMEDOUT.rawValue: (.timedOut, true),
    CURLE_SSL_CONNECT_ERROR.rawValue: (.tlsFailed, true),
    CURLE_BAD_FUNCTION_ARGUMENT.rawValue: (.badRequest, false),
    CURLE_GOT_NOTHING.rawValue: (.noResponse, true),
    CURLE_SEND_ERROR.rawValue: (.sendFailed, true),
    CURLE_RECV_ERROR.rawValue: (.receiveFailed, true),
    CURLE_PEER_FAILED_VERIFICATION.rawValue: (.certificateUntrusted, false),
    CURLE_LOGIN_DENIED.rawValue: (.badRequest, false),
    CURLE_SSL_CACERT_BADFILE.rawValue: (.caFile, true),
    CURLE_HTTP2_STREAM.rawValue: (.receiveFailed, true),
  ]
}
