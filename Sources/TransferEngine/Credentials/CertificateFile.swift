import Glibc
import ReelhaulSystem

/// A PEM file of certificates. It is checked before libcurl uses it.
package enum CertificateFile {
  /// The number of certificates in the file, at least one. Blocks.
  @discardableResult
  package static func check(_ path: String) throws(UnusableFile) -> Int {
    let text: String
    do throws(SystemError) {
      text = String(decoding: try FileDescriptor.open(path, O_RDONLY).contents(), as: UTF8.self)
    } catch {
      throw UnusableFile(description: "\(error)")
    }
    let lines = text.split(whereSeparator: \.isNewline)
    let count = lines.count { $0.hasPrefix("-----BEGIN ") && $0.contains("CERTIFICATE-----") }
    guard count > 0 else { throw UnusableFile(description: "\(path) contains no certificate in PEM format") }
    return count
  }
}
