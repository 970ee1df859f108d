import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

/// The keys of a task with `s3://`.
@Suite struct StorageRootS3Tests {
  private func run(
    awsCredentials: Bool = false, credentials: String? = nil, _ body: (StorageRoot) async throws -> Void
  ) async throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/c.json"
    if let credentials { try TextFile.write(credentials, to: path, mode: 0o600) }
    let loop = EventLoop(name: "s3-test")
    let roots = StorageRoots(
      Storage(roots: ["default": directory.path]), loop: loop,
      settings: .init(
        permits: { _ in true }, credentials: credentials.map { _ in CredentialFile(path: path) },
        awsCredentials: awsCredentials))
    do {
      try await body(#require(roots["default"]))
    } catch {
      Issue.record(error)
    }
    await roots.close()
    loop.shutdown()
  }

  @Test("a task that names no credential fails unless the worker may use AWS's own keys")
  func withoutName() async throws {
    try await run { root in
      let failure = await #expect(throws: TaskFailure.self) { try await root.s3Credential(nil) }
      #expect(failure?.code == .credentialNeeded)
      #expect(failure?.class == .fail)
      #expect(failure?.message == "name a credential with an s3 form")
    }
    try await run(awsCredentials: true) { root in
      // Whatever this machine has: it was looked for.
      do {
        _ = try await root.s3Credential(nil)
      } catch let failure as TaskFailure {
        #expect(failure.code == .credentialsUnusable)
        #expect(failure.class == .wait)
      }
    }
  }

  @Test("a named credential must be there and have keys for S3")
  func withName() async throws {
    let credentials = """
      {"keys": {"s3": {"accessKeyId": "AK", "secretAccessKey": "sk"}}, "token": {"hosts": ["a"], "bearer": "b"}}
      """
    try await run(credentials: credentials) { root in
      let keys = try await root.s3Credential("keys")
      #expect(keys == S3Credential(accessKeyID: "AK", secretAccessKey: "sk"))
      let refused = await #expect(throws: TaskFailure.self) { try await root.s3Credential("token") }
      #expect(refused?.code == .credentialRefused)
      let unknown = await #expect(throws: TaskFailure.self) { try await root.s3Credential("other") }
      #expect(unknown?.code == .credentialUnknown)
      #expect(unknown?.class == .wait)
    }
  }
}
