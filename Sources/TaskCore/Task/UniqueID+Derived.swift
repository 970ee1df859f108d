/// Identifiers that follow from others. They are of version 8.
extension UniqueID {
  /// Made of any two halves: the bits of version and variant are set.
  package init(version8 high: UInt64, _ low: UInt64) {
    self.init(high: high & ~0xF000 | 0x8000, low: low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
  }

  /// The identifier that follows from this one and `hash`. Its first half is this one's, but for the version.
  package func derived(by hash: UInt64) -> UniqueID { UniqueID(version8: high, low ^ hash) }

  /// Where those are from which this one may be derived: a range for each version.
  package var origins: [ClosedRange<UniqueID>] {
    (0..<16 as Range<UInt64>).map { version in
      let high = high & ~0xF000 | version << 12
      return UniqueID(high: high, low: 0)...UniqueID(high: high, low: .max)
    }
  }
}
