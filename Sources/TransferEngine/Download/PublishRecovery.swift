import Digest
import System
import TaskCore

/// Finishes what a run recorded as `publishing` before it died.
struct PublishRecovery: Sendable {
  let context: DownloadContext
  let spec: TaskSpec
  let destination: StorageURL
  let checkpoint: Checkpoint
  let publishing: Checkpoint.Publishing

  enum Result: Sendable {
    case succeeded(sha256: [UInt8]?, bytes: Int64)
    case failed(TaskFailure)
    /// Nothing of the file is left.
    case nothing
  }

  /// Blocks.
  func run() -> Result {
    do throws(StorageError) {
      let file = try adopted()
      var steps = PublishMachine(expect: spec.expect)
      var action = steps.begin(recovering: publishing, hasStaging: file != nil)
      while true {
        switch action {
        case .move:
          guard let file else { return .nothing }
          let published = try context.storage.publish(file, to: destination, ifExists: spec.ifExists)
          action = steps.handle(published == .published ? .moved : .skipped)
        case .inspectDestination:
          action = steps.handle(.inspected(isRecordedFile: try destinationIsRecordedFile()))
        case .succeed(let sha256): return .succeeded(sha256: sha256, bytes: size)
        case .restart: return .nothing
        case .verify, .record, .digestMismatch: return .nothing
        case .fail(let failure): return .failed(failure)
        }
      }
    } catch {
      return error.isVoid ? .nothing : .failed(error.failure)
    }
  }

  private var size: Int64 { checkpoint.done.count }

  private func adopted() throws(StorageError) -> StagingFile? {
    do throws(StorageError) {
      return try context.storage.adopt(for: destination, task: spec.id, checkpoint: checkpoint)
    } catch {
      if error.isVoid { return nil }
      throw error
    }
  }

  /// Whether the rename had happened: the mark tells, or else size and digest.
  private func destinationIsRecordedFile() throws(StorageError) -> Bool {
    let name = StagingName(task: spec.id, generation: checkpoint.generation)
    let volume = try context.storage.volume(destination.root)
    switch try volume.occupant(of: destination, name: name) {
    case .nothing: return false
    case .own: return true
    case .other, .unknown:
      guard !publishing.sha256.isEmpty else { return false }
      let file = try volume.open(destination)
      do throws(SystemError) {
        guard try file.size() == size else { return false }
        return try Self.sha256(of: file) == publishing.sha256
      } catch {
        throw StorageError(error, storage: volume.name)
      }
    }
  }

  private static func sha256(of file: borrowing FileDescriptor) throws(SystemError) -> [UInt8] {
    var state = DigestState(.sha256)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
    defer { buffer.deallocate() }
    var offset: Int64 = 0
    while true {
      let count = try file.read(into: buffer, at: offset)
      if count == 0 { return state.finish() }
      state.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      offset += Int64(count)
    }
  }
}
