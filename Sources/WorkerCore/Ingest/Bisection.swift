/// Finds the refused items in a batch that can only be written as a whole, and writes the others in order.
///
/// A refused range is halved until the refused item is alone. This takes about 2·log₂ n calls for one of n items.
package struct Bisection: Sendable, Hashable {
  /// The ranges still to be written; the first one is last.
  private var pending: [Range<Int>]

  package init(count: Int) {
    pending = count > 0 ? [0..<count] : []
  }

  /// The range to write now; nil when all is done.
  package var current: Range<Int>? { pending.last }

  /// The current range was written.
  package mutating func accept() {
    pending.removeLast()
  }

  /// The current range was refused. If it was a single item, it is left out and its index is returned.
  package mutating func refuse() -> Int? {
    let range = pending.removeLast()
    guard range.count > 1 else { return range.lowerBound }
    let middle = range.lowerBound + range.count / 2
    pending.append(middle..<range.upperBound)
    pending.append(range.lowerBound..<middle)
    return nil
  }
}
