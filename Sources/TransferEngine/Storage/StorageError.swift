import Glibc
import ReelhaulSystem
import TaskCore

/// Why storage could not do what it was asked, and what that means for the task.
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Code: String, Sendable, CaseIterable {
    /// This process has no root of that name.
    case unknownRoot = "storage_unknown"
    /// The root's directory is not there.
    case rootMissing = "storage_missing"
    /// The root has no volume marker: nothing is mounted there, or it was never initialised.
    case notInitialised = "storage_not_initialised"
    /// Another volume is mounted at the root than the one that holds the task's bytes.
    case volumeGone = "storage_volume_gone"
    case readOnly = "storage_read_only"
    case denied = "storage_denied"
    /// The file system or the quota is full, or the reserve forbids to take so much.
    case diskFull = "disk_full"
    /// The volume could not hold the file if it were empty, or its file system knows no files as large.
    case tooLarge = "file_too_large"
    case tooManyFiles = "too_many_files"
    /// The device failed. What was written since the last good sync is void, and with it the staging file.
    case ioError = "storage_io_error"
    /// There is no staging file of this task and generation.
    case stagingMissing = "staging_missing"
    /// A file with the staging file's name is another task's, or nobody's.
    case stagingForeign = "staging_foreign"
    /// The staging file is shorter than what is recorded as done.
    case stagingShort = "staging_short"
    case destinationExists = "destination_exists"
    /// The path runs through a file or a symbolic link, or names what is no regular file.
    case destinationInvalid = "destination_invalid"
    case other = "storage_error"
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
    let `class`: TaskFailure.Class =
      switch code {
      case .unknownRoot, .rootMissing, .notInitialised, .volumeGone, .readOnly, .denied, .diskFull, .tooManyFiles,
        .ioError, .stagingMissing, .stagingForeign, .stagingShort:
        .wait
      case .other: .retry
      case .tooLarge, .destinationExists, .destinationInvalid: .fail
      }
    return TaskFailure(code: code.rawValue, message: message, class: `class`)
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
