import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct CertificateFileTests {
  @Test("certificates are counted with either line break, also behind a comment", arguments: ["\n", "\r\n"])
  func eitherLineBreakEndsALine(_ lineBreak: String) throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/authorities.pem"
    let certificate = ["-----BEGIN CERTIFICATE-----", "MIIB", "-----END CERTIFICATE-----", ""]
    let lines = ["# Our authorities", "subject=/CN=a"] + certificate + certificate
    try TextFile.write(lines.joined(separator: lineBreak), to: path)
    #expect(try CertificateFile.check(path) == 2)
    try TextFile.write(lines.prefix(2).joined(separator: lineBreak), to: path)
    #expect(throws: UnusableFile.self) { try CertificateFile.check(path) }
  }
}
