import Glibc

/// Keeps a file known to the kernel while no descriptor of it is open: a mapping of one page, which nobody touches, needs no
/// descriptor. So the kernel does not forget that a write to the disk failed, and gives the file's inode to no other file.
package final class FilePin: Sendable {
  private let page: UInt
  /// Distinguishes the file from all others.
  package let device: UInt
  package let inode: UInt

  private static let length = 4096

  /// Fails with ENODEV if the file system maps no files.
  package init(_ file: borrowing FileDescriptor) throws(SystemError) {
    let status = try file.status()
    guard let page = mmap(nil, Self.length, PROT_NONE, MAP_PRIVATE, file.raw, 0), page != MAP_FAILED else {
      throw .last("map \(file.path)")
    }
    (device, inode) = (UInt(status.st_dev), UInt(status.st_ino))
    self.page = UInt(bitPattern: page)
  }

  deinit {
    munmap(UnsafeMutableRawPointer(bitPattern: page), Self.length)
  }

  /// Whether `file` is the pinned file.
  package func isOf(_ file: borrowing FileDescriptor) throws(SystemError) -> Bool {
    let status = try file.status()
    return UInt(status.st_dev) == device && UInt(status.st_ino) == inode
  }
}
