import TaskStore

extension StoreError {
  /// What to do about a store that belongs to another fleet or program.
  package var advice: String? {
    switch self {
    case .otherSchema:
      """
      If the schema is a newer one, upgrade this program. If it is another program's, use another database or schema \
      (with 'up', another --data-dir).
      """
    case .otherFleet:
      """
      Correct REELHAUL_TOPIC_PREFIX (--topic-prefix), or give this fleet a database or a schema of its own. \
      To change a fleet's prefix: docs/operations.md.
      """
    case .unavailable, .failed, .schema: nil
    }
  }
}
