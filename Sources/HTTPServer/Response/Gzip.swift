import CReelhaulZlib

/// Compresses bodies (RFC 1952).
package enum Gzip {
  /// The bytes in the format of gzip; nil if there is no memory.
  package static func encode(_ bytes: [UInt8], level: Int32 = 4) -> [UInt8]? {
    var stream = z_stream()
    let window: Int32 = 15 + 16  // 16: with the head and the checksum of gzip
    guard
      deflateInit2_(
        &stream, level, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        == Z_OK
    else { return nil }
    defer { deflateEnd(&stream) }
    let most = Int(deflateBound(&stream, uLong(bytes.count)))
    return bytes.withUnsafeBufferPointer { input in
      [UInt8](unsafeUninitializedCapacity: most) { output, count in
        // zlib does not write to its input, but its type says so.
        stream.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
        stream.avail_in = uInt(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = uInt(most)
        // One call is enough, because the output has room for all.
        deflate(&stream, Z_FINISH)
        count = Int(stream.total_out)
      }
    }
  }
}
