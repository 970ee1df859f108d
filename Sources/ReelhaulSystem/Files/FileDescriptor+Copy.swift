import CReelhaulSystem
import Glibc

/// How a copy of a range ended.
package enum CopyEnd: Hashable, Sendable {
  /// At this offset: before the end of the range if the source ends there, or if it was not to go on.
  case reached(Int64)
  /// The source cannot be read.
  case unreadable(SystemError)
}

extension FileDescriptor {
  /// Copies `range` of `source` to the same place in this file, within the kernel if the file systems can.
  ///
  /// - Parameter goesOn: Asked before anything is written, and after it was read where that is possible.
  package borrowing func copy(
    _ range: Range<Int64>, from source: borrowing FileDescriptor,
    while goesOn: () throws(SystemError) -> Bool = { () throws(SystemError) in true }
  ) throws(SystemError) -> CopyEnd {
    var offset = range.lowerBound
    while offset < range.upperBound {
      guard try goesOn() else { return .reached(offset) }
      let count = rh_copy_range(source.raw, raw, offset, range.upperBound - offset)
      switch Int32(clamping: -count) {
      case EINTR: continue
      // The end of the file; some file systems say so although it is not. Which device has failed is not said.
      case 0, EXDEV, ENOSYS, EOPNOTSUPP, EINVAL, EIO:
        return try copyThroughMemory(offset..<range.upperBound, from: source, while: goesOn)
      case 1...: throw SystemError(errno: Int32(-count), operation: "copy \(source.path) to \(path)")
      default: offset += count
      }
    }
    return .reached(offset)
  }

  /// The same with reads and writes.
  package borrowing func copyThroughMemory(
    _ range: Range<Int64>, from source: borrowing FileDescriptor,
    while goesOn: () throws(SystemError) -> Bool = { () throws(SystemError) in true }
  ) throws(SystemError) -> CopyEnd {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(range.count, 1 << 20), alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = min(buffer.count, Int(range.upperBound - offset))
      let count: Int
      do throws(SystemError) {
        count = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
      } catch {
        return .unreadable(error)
      }
      guard count > 0, try goesOn() else { break }
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      offset += Int64(count)
    }
    return .reached(offset)
  }

  /// Lets this empty file share all blocks of `source`, at one moment. False if the file systems cannot do this.
  package borrowing func clone(_ source: borrowing FileDescriptor) throws(SystemError) -> Bool {
    let result = rh_clone(source.raw, raw)
    switch -result {
    case ...0: return true
    case EXDEV, ENOSYS, EOPNOTSUPP, EINVAL, ENOTTY: return false
    default: throw SystemError(errno: -result, operation: "clone \(source.path) to \(path)")
    }
  }
}
