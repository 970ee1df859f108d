import Glibc
import ReelhaulSystem
import TaskCore

/// Why a storage operation failed, and the consequence for the task.
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: Sendable, CaseIterable {
    /// This process has no root of this name.
    case unknownRoot
    /// The root's directory does not exist.
    case rootMissing
    /// The root has no volume marker: nothing is mounted there, or it was never initialised.
    case notInitialised
    /// The volume at the root is not the one that holds the task's bytes.
    case volumeGone
    case readOnly
    case denied
    /// The file system or the quota is full, or the reserve does not allow so much.
    case diskFull
    /// Even the empty volume could not hold the file, or its file system does not support files of this size.
    case tooLarge
    case tooManyFiles
    /// The device failed. Writes since the last successful sync may be lost, so the staging file cannot be used.
    case ioError
    /// The task has no staging file of this generation.
    case stagingMissing
    /// A file with the staging file's name belongs to another task, or to none.
    case stagingForeign
    /// The staging file is shorter than its recorded bytes.
    case stagingShort
    case destinationExists
    /// The path leads through a file or a symbolic link, or names something that is not a regular file.
    case destinationInvalid
    case other
  }

  package var code: Code
  package var message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// From a failed system call on the root `name`.
  init(_ error: SystemError, storage name: String) {
    self.init(Code(errno: error.errno), "storage \(name): \(error)")
  }

  package static func unknownRoot(_ name: String) -> StorageError {
    StorageError(.unknownRoot, "this worker has no storage \(name)")
  }

  package static func silent(_ name: String) -> StorageError {
    StorageError(.volumeGone, "storage \(name): its file system does not answer")
  }

  package var description: String { message }

  /// Whether the staging file cannot be used any more. Then the task continues with a new generation.
  package var isVoid: Bool {
    switch code {
    case .ioError, .stagingMissing, .stagingForeign, .stagingShort: true
    default: false
    }
  }

  /// The failure of the task. A problem of the machine is not the task's fault, so the task waits.
  package var failure: TaskFailure {
    let (code, `class`): (TaskFailure.Code, TaskFailure.Class) =
      switch self.code {
      case .unknownRoot: (.storageUnknown, .wait)
      case .rootMissing: (.storageMissing, .wait)
      case .notInitialised: (.storageNotInitialised, .wait)
      case .volumeGone: (.storageVolumeGone, .wait)
      case .readOnly: (.storageReadOnly, .wait)
      case .denied: (.storageDenied, .wait)
      case .diskFull: (.diskFull, .wait)
      case .tooLarge: (.fileTooLarge, .fail)
      case .tooManyFiles: (.tooManyFiles, .wait)
      case .ioError: (.storageIOError, .wait)
      case .stagingMissing: (.stagingMissing, .wait)
      case .stagingForeign: (.stagingForeign, .wait)
      case .stagingShort: (.stagingShort, .wait)
      case .destinationExists: (.destinationExists, .fail)
      case .destinationInvalid: (.destinationInvalid, .fail)
      case .other: (.storageError, .retry)
      }
    return TaskFailure(code: code, message: message, class: `class`)
  }
}

extension StorageError.Code {
  init(errno: Int32) {
    switch errno {
    case ENOSPC, EDQUOT: self = .diskFull
    case EFBIG: self = .tooLarge
    case EROFS: self = .readOnly
    case EACCES, EPERM: self = .denied
    case EMFILE, ENFILE: self = .tooManyFiles
    case EIO: self = .ioError
    case ESTALE, ENODEV, ENXIO, ENOTCONN: self = .volumeGone
    case EEXIST: self = .destinationExists
    case ELOOP, EXDEV, ENOTDIR, EISDIR, ENAMETOOLONG, EILSEQ, EINVAL: self = .destinationInvalid
    default: self = .other
    }
  }
}
