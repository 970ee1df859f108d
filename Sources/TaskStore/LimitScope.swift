/// What a limit on running tasks can be set for.
package enum LimitScope: String, Sendable, CaseIterable {
  /// The whole fleet; its name is empty.
  case total
  case kind
  case queue
  case host
  /// A storage, by its name.
  case storage
}
