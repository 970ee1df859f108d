/// A place from which bytes come or to which they go.
public enum ResourceURL: Hashable, Sendable {
  /// `https://host:port/path?query` or `http://…`
  case web(WebURL)
  /// `storage://NAME/path`, below a root that workers mount.
  case storage(StorageURL)

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
    self = .web(try WebURL(text))
  }
}

extension ResourceURL: CustomStringConvertible {
  /// For logs: it does not show the values of a query.
  public var description: String {
    switch self {
    case .web(let url): url.description
    case .storage(let url): url.description
    }
  }
}
