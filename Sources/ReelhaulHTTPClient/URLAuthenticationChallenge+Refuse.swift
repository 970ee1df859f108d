import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

extension URLAuthenticationChallenge {
  /// Refuses a server that asks for another login than the token: a proxy, for example. `note` gets its answer, because
  /// on Linux the session ends with an error instead. Without a delegate that refuses, it would never end there.
  func refuse(
    _ answer: (URLSession.AuthChallengeDisposition, URLCredential?) -> Void, _ note: (HTTPURLResponse) -> Void
  ) {
    // TLS, which asks before there is any answer, goes its usual way.
    guard let refusal = failureResponse as? HTTPURLResponse else { return answer(.performDefaultHandling, nil) }
    note(refusal)
    answer(.rejectProtectionSpace, nil)
  }
}
