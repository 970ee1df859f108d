import Glibc

/// The keywords for libpq, with every host name resolved, because libpq would block while it resolves names.
struct ConnectionTarget: Sendable, Equatable {
  var parameters: [String: String]

  /// `complete` has what libpq would add, too: ``PostgresConfiguration/completed(_:)``. Blocks in the resolver, so it must
  /// not run on a loop. `resolve` makes numeric addresses of a name.
  init(
    _ complete: [String: String], resolve: (String) throws(PostgresError) -> [String] = Self.resolve
  ) throws(PostgresError) {
    parameters = complete
    let (hosts, given, ports) = (list("host"), list("hostaddr"), list("port"))
    let count = given.isEmpty ? hosts.count : given.count
    // Without any, libpq has its own. It reports lists that do not fit to each other.
    guard count > 0, hosts.isEmpty || hosts.count == count, ports.count <= 1 || ports.count == count else { return }

    var expanded: [(host: String, address: String, port: String)] = []
    var failure: PostgresError?
    for index in 0..<count {
      let host = hosts.isEmpty ? "" : hosts[index]
      let address = given.isEmpty ? "" : given[index]
      let port = ports.count > 1 ? ports[index] : ports.first ?? "5432"
      if !address.isEmpty || host.isEmpty || host.hasPrefix("/") || host.hasPrefix("@") {
        expanded.append((host, address, port))
        continue
      }
      do throws(PostgresError) {
        expanded += try resolve(host).map { (host, $0, port) }
      } catch {
        failure = error
      }
    }
    if expanded.isEmpty, let failure { throw failure }
    parameters["host"] = expanded.map(\.host).joined(separator: ",")
    parameters["hostaddr"] = expanded.map(\.address).joined(separator: ",")
    parameters["port"] = expanded.map(\.port).joined(separator: ",")
  }

  /// The entries of a keyword, which stand for servers in order.
  private func list(_ keyword: String) -> [String] {
    guard let value = parameters[keyword], !value.isEmpty else { return [] }
    return value.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// The parameters for each address, in order. Only libpq itself can prefer a standby among all.
  var addresses: [[String: String]] {
    let names = ["host", "hostaddr", "port"]
    let lists = names.map(list)
    guard let count = lists.map(\.count).max(), count > 1, lists.allSatisfy({ $0.count == count }),
      parameters["target_session_attrs"] != "prefer-standby"
    else { return [parameters] }
    return (0..<count).map { index in
      parameters.merging(zip(names, lists.map { $0[index] })) { $1 }
    }
  }

  /// All ``addresses``, beginning with the one of `last` if the URL asks for the primary. If any server will do, the
  /// order in the URL says which is meant.
  func addresses(beginningWith last: [String: String]?) -> [[String: String]] {
    let all = addresses
    guard let last, ["read-write", "primary"].contains(parameters["target_session_attrs"]), all.contains(last)
    else { return all }
    return [last] + all.filter { $0 != last }
  }

  /// The numeric addresses of a host, in the resolver's order.
  static func resolve(_ host: String) throws(PostgresError) -> [String] {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &list)
    guard code == 0 else {
      throw PostgresError(.connection, "could not resolve \(host): \(String(cString: gai_strerror(code)))")
    }
    defer { freeaddrinfo(list) }
    var addresses: [String] = []
    var next = list
    while let entry = next {
      var text = [CChar](repeating: 0, count: Int(NI_MAXHOST))
      if getnameinfo(
        entry.pointee.ai_addr, entry.pointee.ai_addrlen, &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
      {
        addresses.append(text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" })
      }
      next = entry.pointee.ai_next
    }
    return addresses
  }
}
