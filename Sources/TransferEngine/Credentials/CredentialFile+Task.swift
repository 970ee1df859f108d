import ReelhaulCurl
import ReelhaulSystem
import TaskCore

extension CredentialFile? {
  /// The header fields for a task that names `credential`. They may be sent to `source` and nowhere else.
  ///
  /// If this worker lacks the credential or cannot read it, the task waits, because another worker may have it. If the
  /// credential is not for the source's host, waiting does not help, and the task fails.
  ///
  /// - Parameters:
  ///   - files: The threads that read the file.
  ///   - refused: The fields that the server has just refused: a command does not give them again from memory.
  func fields(
    of credential: String, for source: CurlURL, on files: BlockingPool, refused: [HeaderField]? = nil
  ) async throws(TaskFailure) -> [HeaderField] {
    let found = try await self.credential(credential, on: files) { $0.fields == refused }
    guard found.s3 == nil else {
      throw TaskFailure(
        code: .credentialRefused, message: "the credential \"\(credential)\" is for s3:// only", class: .fail)
    }
    guard found.hookSecret == nil else {
      throw TaskFailure(
        code: .credentialRefused, message: "the credential \"\(credential)\" is for web hooks only", class: .fail)
    }
    guard found.isFor(source) else {
      let origin = "\(source.scheme)://\(source.server)"
      throw TaskFailure(
        code: .credentialRefused, message: "the credential \"\(credential)\" is not for \(origin)", class: .fail)
    }
    return found.fields
  }

  /// A credential with fields or keys: that of its command, if it has one.
  fileprivate func credential(
    _ name: String, on files: BlockingPool, isRefused: (Credential) -> Bool
  ) async throws(TaskFailure) -> Credential {
    guard let file = self else { throw .credentialUnknown(name) }
    do {
      guard let found = try await files.run({ try file.credentials()[name] }) else {
        throw TaskFailure.credentialUnknown(name)
      }
      guard let command = found.command else { return found }
      return try await file.commands.credential(name, of: command, isRefused: isRefused)
    } catch let failure as TaskFailure {
      throw failure
    } catch let error as UnusableFile {
      throw .credentialsUnusable(error)
    } catch {
      throw TaskFailure(code: .credentialsUnusable, message: "the engine is shutting down", class: .wait)
    }
  }
}

extension StorageRoot {
  /// The header fields for a task that names `credential`, which win over those of the task; empty if it names none.
  ///
  /// - Parameter refused: The fields that the server has just refused.
  func fields(
    of credential: String?, for url: CurlURL, refused: [HeaderField]? = nil
  ) async throws(TaskFailure) -> [HeaderField] {
    guard let credential else { return [] }
    return try await credentials.fields(of: credential, for: url, on: files, refused: refused)
  }

  /// The keys for a task to or from `s3://` that names `credential`, or none.
  ///
  /// - Parameter refused: The keys that the store has just refused: a command does not give them again from memory.
  package func s3Credential(
    _ credential: String?, refused: S3Credential? = nil
  ) async throws(TaskFailure) -> S3Credential {
    guard let credential else { return try await standardS3Credential() }
    let found = try await credentials.credential(credential, on: files) { kept in
      guard let refused, var keys = kept.s3 else { return false }
      // The store may have told another one.
      keys.region = refused.region
      return keys == refused
    }
    guard let s3 = found.s3 else {
      throw TaskFailure(
        code: .credentialRefused, message: "the credential \"\(credential)\" has no s3 form, which s3:// needs",
        class: .fail)
    }
    return s3
  }

  /// The keys of AWS's own files and environment, if the worker may use them.
  private func standardS3Credential() async throws(TaskFailure) -> S3Credential {
    guard usesAWSCredentials else {
      throw TaskFailure(code: .credentialNeeded, message: "name a credential with an s3 form", class: .fail)
    }
    do {
      guard let found = try await files.run({ try AWSCredentials.standard(environment: ProcessEnvironment.all) }) else {
        throw UnusableFile(description: "neither its environment nor AWS's files have keys")
      }
      return found
    } catch let error as UnusableFile {
      throw .credentialsUnusable(error)
    } catch {
      throw TaskFailure(code: .credentialsUnusable, message: "the engine is shutting down", class: .wait)
    }
  }
}

extension TaskFailure {
  fileprivate static func credentialUnknown(_ name: String) -> TaskFailure {
    TaskFailure(
      code: .credentialUnknown, message: "the worker on \(Machine.hostName) has no credential \"\(name)\"", class: .wait
    )
  }

  fileprivate static func credentialsUnusable(_ error: UnusableFile) -> TaskFailure {
    TaskFailure(code: .credentialsUnusable, message: "the worker on \(Machine.hostName): \(error)", class: .wait)
  }
}

extension [HeaderField] {
  /// The header fields of a task, with those of its credential, which win.
  func overridden(by credential: [HeaderField]) -> [HeaderField] {
    let names = Set(credential.map { $0.name.lowercased() })
    return filter { !names.contains($0.name.lowercased()) } + credential
  }
}
