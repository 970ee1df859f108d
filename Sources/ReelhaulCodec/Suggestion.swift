/// Guesses the word that a mistyped word was meant to be.
package enum Suggestion {
  /// The candidate nearest to `word`: at most one edit away, or two edits if both have five letters or more.
  package static func nearest(to word: String, in candidates: some Sequence<String>) -> String? {
    var best: (word: String, distance: Int)?
    for candidate in candidates {
      let distance = distance(word, candidate)
      let shorter = min(word.count, candidate.count)
      guard distance <= (shorter < 5 ? 1 : 2), distance < shorter, distance < best?.distance ?? 3 else { continue }
      best = (candidate, distance)
    }
    return best?.word
  }

  /// The number of insertions, deletions, replacements and swaps of neighbours between two words.
  package static func distance(_ a: String, _ b: String) -> Int {
    let a = Array(a.utf8)
    let b = Array(b.utf8)
    guard abs(a.count - b.count) <= 2, a.count < 64, b.count < 64 else { return max(a.count, b.count) }
    var older: [Int] = []
    var old = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var cost = min(old[j + 1] + 1, row[j] + 1, old[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, older[j - 1] + 1) }
        row.append(cost)
      }
      older = old
      old = row
    }
    return old[b.count]
  }
}
