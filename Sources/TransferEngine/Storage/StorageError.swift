import Glibc
import ReelhaulSystem
import TaskCore

/// Why storage could not do what it was asked, and what that means for the task.
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: Sendable, CaseIterable {
    /// This process has no root of that name.
    case unknownRoot
    /// The root's directory is not there.
    case rootMissing
    /// The root has no volume marker: nothing is mounted there, or it was never initialised.
    case notInitialised
    /// Another volume is mounted at the root than the one that holds the task's bytes.
    case volumeGone
    case readOnly
    case denied
    /// The file system or the quota is full, or the reserve forbids to take so much.
    case diskFull
    /// The volume could not hold the file if it were empty, or its file system knows no files as large.
    case tooLarge
    case tooManyFiles
    /// The device failed. What was written since the last good sync is void, and with it the staging file.
    case ioError
    /// There is no staging file of this task and generation.
    case stagingMissing
    /// A file with the staging file's name is another task's, or nobody's.
    case stagingForeign
    /// The staging file is shorter than what is recorded as done.
    case stagingShort
    case destinationExists
    /// The path runs through a file or a symbolic link, or names what is no regular file.
    case destinationInvalid
    case other
  }

  package var code: Code
  package var message: String

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Of a failed system call on the root `name`.
  init(_ error: SystemError, storage name: String) {
    self.init(Code(errno: error.errno), "storage \(name): \(error)")
  }

  static func unknownRoot(_ name: String) -> StorageError {
    StorageError(.unknownRoot, "this worker has no storage \(name)")
  }

  package var description: String { message }

  /// The staging file is no longer any good: go on with a new generation.
  package var isVoid: Bool {
    switch code {
    case .ioError, .stagingMissing, .stagingForeign, .stagingShort: true
    default: false
    }
  }

  /// What is wrong with the machine is not the task's fault: the task waits.
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
