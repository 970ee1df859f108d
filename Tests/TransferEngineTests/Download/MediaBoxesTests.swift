import ReelhaulSystem
import TestKit
import Testing

@testable import TransferEngine

@Suite struct MediaBoxesTests {
  private func addUp(_ bytes: [UInt8], size: Int64? = nil) -> Bool {
    var boxes = MediaBoxes(size: size ?? Int64(bytes.count)) { range -> [UInt8] in
      #expect(range.count <= 64 << 10)
      let all = Int64(bytes.count)
      return Array(bytes[Int(min(range.lowerBound, all))..<Int(min(range.upperBound, all))])
    }
    return boxes.addUp()
  }

  private static let files = [
    MP4.file(media: 100), MP4.file(media: 100, moovFirst: true), MP4.file(media: 100, isWide: true),
    MP4.file(media: 100, moovFirst: true, isWide: true),
  ]

  @Test("a file is whole if its boxes add up, and no beginning of it is", arguments: files)
  func onlyTheWholeFileAddsUp(file: [UInt8]) {
    #expect(addUp(file))
    #expect(addUp(file + MP4.box("free", [0, 0])))
    for count in file.indices { #expect(!addUp(Array(file[..<count])), "\(count) of \(file.count) bytes") }
    #expect(!addUp(file + [0]))
    #expect(!addUp(file, size: Int64(file.count) + 1))
  }

  @Test("a table of chunks that is longer than one read is read to its end")
  func longTablesAreRead() {
    let count = 40_000
    func file(_ last: Int) -> [UInt8] {
      let start = MP4.ftyp.count + MP4.moov([Int](repeating: 0, count: count)).count + 8
      let chunks = (0..<count).map { $0 == count - 1 ? last + start : start + $0 % 10 }
      return MP4.ftyp + MP4.moov(chunks) + MP4.box("mdat", [UInt8](repeating: 1, count: 10))
    }
    #expect(addUp(file(9)))
    #expect(!addUp(file(10)))
  }

  @Test("a film without chunks needs no media")
  func aFilmMayBeEmpty() {
    #expect(addUp(MP4.ftyp + MP4.moov([])))
  }

  @Test("boxes that prove nothing are not taken for a whole file")
  func doubtsAreNotAProof() {
    let (ftyp, start) = (MP4.ftyp, MP4.ftyp.count + 8)
    let mdat = MP4.box("mdat", [1, 2, 3, 4])
    let moov = MP4.moov([start])
    #expect(addUp(ftyp + mdat + moov))
    let toTheEnd = MP4.number(0, 4) + Array("mdat".utf8) + [1, 2, 3, 4]
    let doubtful: [(String, [UInt8])] = [
      ("empty", []), ("a box to the end", ftyp + MP4.moov([ftyp.count + moov.count + 8]) + toTheEnd),
      ("a box to the end that nothing refers to", ftyp + mdat + moov + MP4.number(0, 4) + Array("free".utf8)),
      ("no ftyp", mdat + MP4.moov([8])), ("ftyp is not the first", mdat + ftyp + MP4.moov([8])),
      ("no moov", ftyp + mdat), ("two of them", ftyp + mdat + moov + moov), ("no media", ftyp + moov),
      ("a chunk before the media", ftyp + mdat + MP4.moov([start - 1])),
      ("a chunk after the media", ftyp + mdat + MP4.moov([start + 4])),
      ("a chunk beyond the file", ftyp + mdat + MP4.moov([.max], isWide: true)),
      ("a fragment", ftyp + mdat + moov + MP4.box("moof", [])),
      ("fragments are to come", ftyp + mdat + MP4.moov([start], extra: MP4.box("mvex", []))),
      ("no track", ftyp + mdat + MP4.box("moov", MP4.box("mvhd", [1]))),
      ("a track without a table", ftyp + mdat + MP4.box("moov", MP4.box("trak", MP4.box("mdia", [])))),
      ("rubbish in moov", ftyp + mdat + MP4.moov([start], extra: [0, 0, 0])),
    ]
    for (name, file) in doubtful { #expect(!addUp(file), "\(name)") }
  }

  @Test(
    "lengths that are too small, too large or overflow are refused",
    arguments: [0, 1, 7, 8, 15, 16, 1 << 32, UInt64(Int64.max), UInt64(Int64.max) + 1, .max])
  func wrongLengthsAreRefused(length: UInt64) {
    let rest = MP4.file(media: 100)
    let wide = MP4.number(1, 4) + Array("free".utf8) + MP4.number(length, 8)
    #expect(addUp(rest + wide) == (length == 16))
    #expect(!addUp(MP4.ftyp + wide.prefix(8) + MP4.number(length, 8), size: .max))
    let narrow = MP4.number(min(length, UInt64(UInt32.max)), 4) + Array("free".utf8)
    #expect(addUp(rest + narrow) == (length == 8))
  }

  @Test("a table that says it is longer than its box is refused")
  func wrongCountsAreRefused() {
    for count in [0, 1, 3, UInt64(UInt32.max)] {
      var file = MP4.file(media: 100)
      file.replaceSubrange(file.count - 12..<file.count - 8, with: MP4.number(count, 4))
      #expect(!addUp(file))
    }
  }

  @Test("a file of a billion boxes is given up")
  func theWorkIsBounded() {
    var reads = 0
    var boxes = MediaBoxes(size: 8 << 30) { range -> [UInt8] in
      reads += 1
      return Array((range.lowerBound == 0 ? MP4.box("ftyp", []) : MP4.box("free", [])).prefix(range.count))
    }
    let addsUp = boxes.addUp()
    #expect(!addsUp)
    #expect(reads < 1 << 19)
  }

  @Test("random damage never crashes it")
  func damageIsSurvived() {
    var random = SplitMix64(seed: 7)
    for round in 0..<20_000 {
      var file = Self.files[round % Self.files.count]
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<file.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: file[index] = .random(in: 0...255, using: &random)
        case 1: file[index] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
        case 2: file.removeSubrange(index..<min(file.count, index + 8))
        default: file.insert(contentsOf: MP4.number(random.next(), 8), at: index)
        }
      }
      _ = addUp(file)
      _ = addUp(file, size: .random(in: 0...Int64.max, using: &random))
      _ = addUp((0..<64).map { _ in .random(in: 0...255, using: &random) })
    }
  }
}
