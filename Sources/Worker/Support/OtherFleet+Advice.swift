import TaskStore

extension OtherFleet {
  /// What to do about a worker that ends because of it.
  static let advice = """
    Correct REELHAUL_TOPIC_PREFIX (--topic-prefix), or give this fleet a database or a schema of its own. \
    To change a fleet's prefix: docs/operations.md.
    """
}
