import Glibc
import ReelhaulSystem

/// A PEM file of certificates. It is checked before libcurl uses it.
package enum CertificateFile {
  /// The number of certificates in the file, at least one. Blocks.
  @discardableResult
  package static func check(_ path: String) throws(UnusableFile) -> Int {
    let text: String
    do {
      text = String(decoding: try FileDescriptor.regular(path).contents(), as: UTF8.self)
    } catch {
      throw error as? UnusableFile ?? UnusableFile(description: "\(error)")
    }
    let lines = text.split(whereSeparator: \.isNewline)
    let count = lines.count { $0.hasPrefix("-----BEGIN ") && $0.contains("CERTIFICATE-----") }
    guard count > 0 else { throw UnusableFile(description: "\(path) contains no certificate in PEM format") }
    return count
  }
}
