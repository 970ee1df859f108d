/// Finds, in a batch that is written as a whole, the items that are refused, and gets the others through in order.
///
/// A refused range is halved until the refused item stands alone: about 2·log₂ n calls for one item in n.
package struct Bisection: Sendable, Hashable {
  /// What is still to be written; the first range is last.
  private var pending: [Range<Int>]

  package init(count: Int) {
    pending = count > 0 ? [0..<count] : []
  }

  /// The range to write now, `nil` when all is done.
  package var current: Range<Int>? { pending.last }

  /// The current range was written.
  package mutating func accept() {
    pending.removeLast()
  }

  /// The current range was refused. Returns the item's index when it was alone; it is then left out.
  package mutating func refuse() -> Int? {
    let range = pending.removeLast()
    guard range.count > 1 else { return range.lowerBound }
    let middle = range.lowerBound + range.count / 2
    pending.append(middle..<range.upperBound)
    pending.append(range.lowerBound..<middle)
    return nil
  }
}
