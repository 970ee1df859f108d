/// Small files of boxes, as MP4 and QuickTime have them.
package enum MP4 {
  /// A box with its length in front: of 64 bits if `isWide`.
  package static func box(_ type: String, _ content: [UInt8], isWide: Bool = false) -> [UInt8] {
    guard isWide else { return number(UInt64(8 + content.count), 4) + Array(type.utf8) + content }
    return number(1, 4) + Array(type.utf8) + number(UInt64(16 + content.count), 8) + content
  }

  /// `number` in its lowest `width` bytes, the highest first.
  package static func number(_ number: UInt64, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
  }

  package static let ftyp = box("ftyp", Array("isom".utf8) + number(0, 4))

  /// A `moov` with one track, whose chunks begin at `chunks`.
  package static func moov(_ chunks: [Int], isWide: Bool = false, extra: [UInt8] = []) -> [UInt8] {
    let width = isWide ? 8 : 4
    let table = number(0, 4) + number(UInt64(chunks.count), 4) + chunks.flatMap { number(UInt64($0), width) }
    let stbl = box("stbl", box("stsd", [0, 0]) + box(isWide ? "co64" : "stco", table))
    return box("moov", box("mvhd", [1]) + box("trak", box("mdia", box("minf", stbl))) + extra)
  }

  /// A whole file with `media` bytes of film, in two chunks.
  package static func file(media: Int, moovFirst: Bool = false, isWide: Bool = false) -> [UInt8] {
    let content = OriginContent(seed: UInt64(media)).bytes(0..<Int64(media))
    let mdat = box("mdat", content, isWide: isWide)
    let start = ftyp.count + (moovFirst ? moov([0, 0], isWide: isWide).count : 0) + mdat.count - media
    let moov = moov([start, start + media / 2], isWide: isWide)
    return ftyp + (moovFirst ? moov + mdat : mdat + moov)
  }
}
