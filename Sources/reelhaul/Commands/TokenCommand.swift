import CommandLineKit
import ControlAPI
import ReelhaulCodec
import ReelhaulMessages
import ReelhaulSystem
import TaskCore
import TaskStore
import WorkerOptions

extension Subcommand {
  static let token = Subcommand(
    CommandSpec(
      name: "token", summary: "Make, list and revoke tokens of the HTTP API",
      discussion: """
        'create' prints a new token, once: only its SHA-256 is stored. 'read' may look, 'write' may also submit and \
        control tasks, 'admin' may also see and change dead letters and web hooks of queues, and change limits, queues \
        and workers. A token that is limited to queues sees and reaches only their tasks. Its name stands in commands and events as who did it; without --name it is the scope \
        and six digits. A revoked token, and the browsers that signed in with it, stop within seconds.
        """,
      options: [.tokenName, .tokenScope, .tokenQueues, .tokenExpiry, .json] + OptionSpec.reading,
      positionals: [
        PositionalSpec("ACTION", kind: .choice(["create", "list", "revoke"]), help: "create, list or revoke"),
        PositionalSpec("TOKEN", .optional, help: "of revoke: the token's name or id"),
      ],
      examples: [
        Example("reelhaul token create --name ci --scope write --queue builds --expires 30d", "For a program"),
        Example("reelhaul token list", "Who has one, until when, and when it was last used"),
        Example("reelhaul token revoke ci", "It stops within seconds"),
      ],
      exits: ExitCode.meanings(.done, .failed, .usage, .unreachable, .notFound))
  ) { context in
    let words = context.arguments.positionals
    guard words[0] == "revoke" || words.count == 1 else { throw UsageError("\(words[0]) takes no further word") }
    if words[0] != "create" {
      try context.arguments.refuse([.tokenScope, .tokenQueues, .tokenExpiry], "belongs to 'create'")
    }
    if words[0] == "list" { try context.arguments.refuse([.tokenName], "belongs to 'create' and 'revoke'") }
    if words.count > 1 { try context.arguments.refuse([.tokenName], "is another name for \(words[1])") }
    return switch words[0] {
    case "create": try await create(context)
    case "list": try await list(context)
    default: try await revoke(words.count > 1 ? words[1] : nil, context)
    }
  }

  private static func create(_ context: Context) async throws -> ExitCode {
    let secret = TokenSecret()
    let new = try NewToken(context.arguments, hash: secret.hash)
    guard let token = try await Fleet.withStoreToChange(context, { try await $0.createToken(new) }) else {
      throw CommandFailure(
        .failed, "there is a token with the name \(new.name)", hint: "Choose another --name, or revoke that one first.")
    }
    var output = context.output
    output.lastWords = "The token \(token.name) was made, and nobody has it: 'reelhaul token revoke \(token.id)'."
    if context.wantsJSON {
      output.document { json in token.write(to: &json, secret: secret.text) }
    } else {
      context.note(
        "\(new.name): this is shown once. Send it as 'Authorization: Bearer …', or sign in with it on the dashboard.")
      output.line(secret.text)
    }
    return .done
  }

  private static func list(_ context: Context) async throws -> ExitCode {
    let tokens = try await Fleet.withStore(context) { try await $0.tokens() }
    if context.wantsJSON {
      context.output.documents(tokens) { token, json in token.write(to: &json) }
    } else if tokens.isEmpty {
      context.note("There are no tokens. Make one with 'reelhaul token create'.")
    } else {
      context.print(.tokens(tokens))
    }
    return .done
  }

  private static func revoke(_ name: String?, _ context: Context) async throws -> ExitCode {
    guard let name = name ?? context.arguments[.tokenName] else {
      throw UsageError("name the token to revoke, by its name or its id")
    }
    guard let token = try await Fleet.withStoreToChange(context, { try await $0.revokeToken(name) }) else {
      throw CommandFailure(.notFound, "there is no token \(name)", hint: "'reelhaul token list' shows those that hold.")
    }
    if context.wantsJSON {
      context.output.document { json in token.write(to: &json) }
    } else {
      context.note("Revoked \(token.name). It stops within seconds.")
    }
    return .done
  }
}

extension NewToken {
  init(_ arguments: Arguments, hash: [UInt8]) throws(UsageError) {
    guard let scope = arguments[.tokenScope].flatMap({ TokenScope(rawValue: $0) }) else {
      throw UsageError("create needs --scope")
    }
    let name = arguments[.tokenName] ?? "\(scope.rawValue)-\(Hex.encode(hash.prefix(3)))"
    guard name.unicodeScalars.count <= APIToken.longestName, Command.Control.isActor(name) else {
      throw UsageError("--name must have 1 to \(APIToken.longestName) characters, none of them a control character")
    }
    let queues = Set(arguments.all(.tokenQueues))
    guard queues.count <= APIToken.mostQueues, queues.allSatisfy({ TaskSpec.isName($0, limit: 100) }) else {
      throw UsageError(
        "--queue must be 1 to 100 letters, digits, \".\", \"_\" or \"-\", at most \(APIToken.mostQueues) times")
    }
    var lifetime: Duration?
    if let text = arguments[.tokenExpiry] {
      guard let duration = DurationText.parse(text), .seconds(1)...(.seconds(3650 * 86_400)) ~= duration else {
        throw UsageError("--expires must be a time from 1s to 3650d, such as 30d or 12h, not \"\(text)\"")
      }
      lifetime = duration
    }
    self.init(name: name, scope: scope, queues: queues.isEmpty ? nil : queues, lifetime: lifetime, hash: hash)
  }
}

extension APIToken {
  fileprivate func write(to json: inout JSONWriter, secret: String? = nil) {
    json.object { json in
      json.member("id", id)
      json.member("name", name)
      json.member("scope", scope.rawValue)
      json.name("queues")
      if let queues {
        json.array { json in for queue in queues.sorted() { json.string(queue) } }
      } else {
        json.null()
      }
      json.member("createdAt", createdAt)
      json.member("expiresAt", orNull: expiresAt)
      json.member("lastUsedAt", orNull: lastUsedAt)
      json.member("token", secret)
    }
  }
}

extension Table {
  fileprivate static func tokens(_ tokens: [APIToken]) -> Table {
    var table = Table([
      .init("NAME", shrinks: true), .init("SCOPE"), .init("QUEUES", shrinks: true), .init("EXPIRES"),
      .init("LAST USED", leaves: 1), .init("CREATED", leaves: 2), .init("ID", leaves: 3),
    ])
    for token in tokens {
      table.add([
        token.name, token.scope.rawValue, token.queues?.sorted().joined(separator: " ") ?? "all",
        token.expiresAt?.relative ?? "never", token.lastUsedAt?.relative ?? "never", token.createdAt.relative,
        "\(token.id)",
      ])
    }
    return table
  }
}

extension OptionSpec {
  fileprivate static let tokenName = OptionSpec(
    "name", .text, valueName: "NAME", help: "The token's name, which commands and events have as who did it")
  fileprivate static let tokenScope = OptionSpec(
    "scope", .choice(TokenScope.allCases.map(\.rawValue)), help: "What it allows; each includes the ones before it")
  fileprivate static let tokenQueues = OptionSpec(
    "queue", short: "q", .text, valueName: "QUEUE", repeatable: true,
    help: "Only tasks of this queue, and of the others that are named; all if none is")
  fileprivate static let tokenExpiry = OptionSpec(
    "expires", .text, valueName: "TIME", help: "How long it is valid, such as 30d or 12h; for ever if not given")
}
