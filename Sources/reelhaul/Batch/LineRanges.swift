/// Line numbers in order, in a form for people: `line 3`, `lines 3, 5-900`.
struct LineRanges: CustomStringConvertible {
  private var ranges: [ClosedRange<Int>] = []

  init(_ numbers: some Sequence<Int>) {
    for number in numbers {
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
  }

  var description: String {
    let texts = ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
    return (ranges.count == 1 && ranges[0].count == 1 ? "line " : "lines ") + texts.joined(separator: ", ")
  }
}
