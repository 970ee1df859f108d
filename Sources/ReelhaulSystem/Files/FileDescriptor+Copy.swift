import CReelhaulSystem
import Glibc

extension FileDescriptor {
  /// Copies `range` of `source` to the same place in this file, within the kernel if the file systems can. Returns where
  /// it ended, which is earlier only if `source` ends there.
  package borrowing func copy(
    _ range: Range<Int64>, from source: borrowing FileDescriptor
  ) throws(SystemError) -> Int64 {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let count = rh_copy_range(source.raw, raw, offset, range.upperBound - offset)
      switch Int32(clamping: -count) {
      case EINTR: continue
      // The end of the file; some file systems say so although it is not.
      case 0, EXDEV, ENOSYS, EOPNOTSUPP, EINVAL:
        return try copyThroughMemory(offset..<range.upperBound, from: source)
      case 1...: throw SystemError(errno: Int32(-count), operation: "copy \(source.path) to \(path)")
      default: offset += count
      }
    }
    return offset
  }

  /// The same with reads and writes.
  package borrowing func copyThroughMemory(
    _ range: Range<Int64>, from source: borrowing FileDescriptor
  ) throws(SystemError) -> Int64 {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: min(range.count, 1 << 20), alignment: 4096)
    defer { buffer.deallocate() }
    var offset = range.lowerBound
    while offset < range.upperBound {
      let wanted = min(buffer.count, Int(range.upperBound - offset))
      let count = try source.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
      guard count > 0 else { break }
      try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: offset)
      offset += Int64(count)
    }
    return offset
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
