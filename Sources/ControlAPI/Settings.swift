import ReelhaulSystem

extension ControlAPI {
  /// How an API is reached, and by whom.
  package struct Settings: Sendable {
    /// The names under which the server may be called. Without tokens, another name in `Host` is a page of somebody
    /// else's whose name was made to lead here.
    package var names: Set<String> = []
    package var requiresTokens = false
    /// Whether `/metrics` may be read without a token.
    package var hasOpenMetrics = false
    /// The path below which everything is; empty, or such as `/reelhaul`.
    package var prefix = ""
    /// Where browsers reach it, such as `https://films.example`; empty for where the request says.
    package var publicOrigin = ""
    /// The origins whose pages may call it, such as `https://tools.example`.
    package var corsOrigins: Set<String> = []
    /// The address is that of a proxy whose `X-Forwarded-For` and `X-Forwarded-Proto` are true.
    package var isProxy: @Sendable (String) -> Bool = { _ in false }
    /// How many requests a token may send in a second, or all together where none is needed; nil for any number.
    package var requestsPerSecond: Int?
    /// How many wrong tokens an address may send at once; then one in six seconds.
    package var wrongTokens = 10
    /// How often a stream of the state says `ping` where nothing changes.
    package var ping = Duration.seconds(15)

    package init() {}
  }
}
