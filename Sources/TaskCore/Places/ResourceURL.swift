/// A place from which bytes come or to which they go.
public enum ResourceURL: Hashable, Sendable {
  /// `https://host:port/path?query` or `http://…`
  case web(WebURL)
  /// `storage://NAME/path`, below a root that workers mount.
  case storage(StorageURL)
  /// `s3://BUCKET/KEY`
  case s3(S3URL)
  /// `tus+https://…` or `tus+http://…`, a server of the tus protocol.
  case tus(TusURL)

  public init(_ text: String) throws(InvalidURL) {
    guard !text.isEmpty else { throw .empty }
    guard text.utf8.count <= TaskSpec.urlLimit else { throw .tooLong }
    guard !StorageURL.hasScheme(text.utf8) else {
      do throws(InvalidStorageURL) {
        self = .storage(try StorageURL(text))
        return
      } catch {
        throw .storage(error)
      }
    }
    if S3URL.hasScheme(text.utf8) {
      self = .s3(try S3URL(text))
    } else if TusURL.hasScheme(text.utf8) {
      self = .tus(try TusURL(text))
    } else {
      self = .web(try WebURL(text))
    }
  }

  /// Whether `text` begins with `scheme`, which is in lower case. Upper and lower case are equal, as in all schemes.
  static func begins(_ text: some Sequence<UInt8>, with scheme: String) -> Bool {
    text.starts(with: scheme.utf8) { byte, wanted in
      byte == wanted || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) && byte | 0x20 == wanted
    }
  }
}

extension ResourceURL: CustomStringConvertible {
  /// For logs: it does not show the values of a query.
  public var description: String {
    switch self {
    case .web(let url): url.description
    case .storage(let url): url.description
    case .s3(let url): url.description
    case .tus(let url): url.description
    }
  }
}
