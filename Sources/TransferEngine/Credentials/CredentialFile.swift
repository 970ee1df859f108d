import Glibc
import ReelhaulCodec
import ReelhaulSystem

/// The file with a worker's credentials. It is read at every use, so a secret can be changed under a running fleet by
/// replacing the file.
package struct CredentialFile: Sendable {
  package let path: String
  let commands: CredentialCommands

  /// - Parameter commandTimeout: How long the program of a credential may take.
  package init(path: String, commandTimeout: Duration = .seconds(30)) {
    self.path = path
    commands = CredentialCommands(timeout: commandTimeout)
  }

  /// All credentials, by name. Blocks.
  package func credentials() throws(UnusableFile) -> [String: Credential] {
    do {
      return try Credential.all(contents())
    } catch let error as UnusableFile {
      throw error
    } catch let error as SystemError {
      throw UnusableFile(description: "\(error)")
    } catch {
      throw UnusableFile(description: "\(path): \(error)")
    }
  }

  private func contents() throws -> [UInt8] {
    let file = try FileDescriptor.regular(path)
    let status = try file.status()
    guard status.st_mode & 0o027 == 0 else {
      let mode = String(status.st_mode & 0o777, radix: 8)
      throw UnusableFile(description: "\(path) is readable by others (mode \(mode)): use chmod 600")
    }
    return try file.contents()
  }
}

extension FileDescriptor {
  /// Opens a file for reading. Anything else is refused: nobody may ever write to a pipe.
  static func regular(_ path: String) throws -> FileDescriptor {
    let file = try open(path, O_RDONLY | O_NONBLOCK)
    guard try file.status().st_mode & S_IFMT == S_IFREG else {
      throw UnusableFile(description: "\(path) is not a file")
    }
    return file
  }
}

/// Why a file of secrets or certificates cannot be used. For people. Of the file's contents, it shows only names.
package struct UnusableFile: Error, CustomStringConvertible {
  package let description: String
}
