/// A server of the tus protocol: `tus+https://…` or `tus+http://…`. For an upload it is the URL at which uploads are
/// created, for a delete the URL of one upload.
public struct TusURL: Hashable, Sendable {
  /// The URL without `tus+`, to which requests are sent.
  public let endpoint: WebURL

  public init(_ text: String) throws(InvalidURL) {
    guard Self.hasScheme(text.utf8) else { throw .noScheme }
    let length = Self.prefix.utf8.count
    do throws(InvalidURL) {
      endpoint = try WebURL(String(text.utf8.dropFirst(length)) ?? "")
    } catch {
      switch error {
      case .unsupportedScheme(let scheme): throw .unsupportedScheme(Self.prefix + scheme)
      case .character(let offset): throw .character(offset: offset + length)
      case .percentEncoding(let offset): throw .percentEncoding(offset: offset + length)
      case .encodedNUL(let offset): throw .encodedNUL(offset: offset + length)
      default: throw error
      }
    }
  }

  /// The whole URL. It may contain secrets; ``description`` does not.
  public var text: String { Self.prefix + endpoint.text }

  private static let prefix = "tus+"

  static func hasScheme(_ text: some Sequence<UInt8>) -> Bool { ResourceURL.begins(text, with: prefix) }
}

extension TusURL: CustomStringConvertible {
  /// For logs: it does not show the values of the query.
  public var description: String { Self.prefix + endpoint.description }
}
