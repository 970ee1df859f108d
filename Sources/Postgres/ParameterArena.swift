/// The memory in which the parameters of one statement lie while libpq copies them; grows to the largest and is reused.
struct ParameterArena: ~Copyable {
  private var memory: UnsafeMutableRawBufferPointer = .allocate(byteCount: 4096, alignment: 16)

  init() {}

  deinit {
    memory.deallocate()
  }

  mutating func withParameters<Result>(
    _ values: [PostgresValue],
    _ body: (Int32, [UnsafePointer<CChar>?], [Int32], [Int32]) -> Result
  ) -> Result {
    let size = values.reduce(1) { $0 + ($1.bytes?.count ?? 0) }
    if size > memory.count {
      memory.deallocate()
      memory = .allocate(byteCount: size + size / 2, alignment: 16)
    }
    var pointers: [UnsafePointer<CChar>?] = []
    var lengths: [Int32] = []
    var offset = 0
    for value in values {
      guard let bytes = value.bytes else {
        pointers.append(nil)
        lengths.append(0)
        continue
      }
      let place = UnsafeMutableRawBufferPointer(rebasing: memory[offset...])
      place.copyBytes(from: bytes)
      pointers.append(place.baseAddress.map { UnsafePointer($0.assumingMemoryBound(to: CChar.self)) })
      lengths.append(Int32(bytes.count))
      offset += bytes.count
    }
    return body(Int32(values.count), pointers, lengths, [Int32](repeating: 1, count: values.count))
  }
}
