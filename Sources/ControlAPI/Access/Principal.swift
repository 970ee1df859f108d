import TaskCore
import TaskStore

/// Who sends a request, and what may be reached.
struct Principal: Hashable, Sendable {
  /// The name that commands, events and logs have: that of the token.
  var actor: String
  var scope: TokenScope
  /// The queues whose tasks may be seen and touched; nil for all.
  var queues: Set<String>?
  /// The token, or the session, that was shown; nil where none is needed.
  var token: UniqueID?
  /// The token, or the one with which the session was signed in. The API tells its id to nobody.
  var account: UniqueID?

  /// Everybody, where no tokens are required.
  static let everybody = Principal(actor: "local", scope: .admin)

  init(
    actor: String, scope: TokenScope, queues: Set<String>? = nil, token: UniqueID? = nil, account: UniqueID? = nil
  ) {
    self.actor = actor
    self.scope = scope
    self.queues = queues
    self.token = token
    self.account = account
  }

  init(_ token: APIToken) {
    // Workers refuse a command with another name. Tokens that were made earlier may have one.
    let actor = Command.Control.isActor(token.name) ? token.name : "token"
    self.init(
      actor: actor, scope: token.scope, queues: token.queues, token: token.id, account: token.parent ?? token.id)
  }

  /// Whether the tasks of a queue exist for this principal.
  func reaches(queue: String) -> Bool { queues?.contains(queue) ?? true }

  func reaches(_ task: TaskDocument) -> Bool { reaches(queue: task.spec.queue) }

  /// What a list may show that is asked for some queues (nil for all): nil for all, and an empty set for none.
  func reachable(of asked: Set<String>?) -> Set<String>? {
    guard let queues else { return asked }
    return asked.map(queues.intersection) ?? queues
  }
}

/// What a route asks of those who call it.
enum Need: Hashable, Sendable {
  /// Anybody may call it: it tells nothing of the fleet.
  case nothing
  case scope(TokenScope)

  static let read = Need.scope(.read)
  static let write = Need.scope(.write)
  static let admin = Need.scope(.admin)
}

/// Decides whether a principal may call a route.
enum Access: Hashable, Sendable {
  case allowed
  /// There is no valid token.
  case unknown
  /// The token is not for this; the reason, for people.
  case forbidden(String)

  /// `isPerQueue`: the route itself heeds the queues of the principal. A route that does not is closed to those who are
  /// limited to some.
  static func decide(_ need: Need, isPerQueue: Bool, for principal: Principal?) -> Access {
    guard case .scope(let scope) = need else { return .allowed }
    guard let principal else { return .unknown }
    guard principal.scope >= scope else {
      return .forbidden(
        "this needs a token of the scope \(scope.rawValue), and this one's is \(principal.scope.rawValue)")
    }
    guard isPerQueue || principal.queues == nil else {
      return .forbidden("a token that is limited to queues cannot do this: it concerns the whole fleet")
    }
    return .allowed
  }
}
