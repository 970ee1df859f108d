import Glibc
import ReelhaulSystem
import TestKit
import Testing

@testable import ReelhaulPostgres

/// URLs, targets, refusals and back-off: decisions that need no server.
struct ConnectingTests {
  @Test(arguments: [
    "postgres://u:p@h:1/d", "postgresql://h/d?sslmode=require", "host=h dbname=d", "postgres://%2Ftmp%2Fx/d",
  ])
  func urlsOfLibpqAreTaken(url: String) throws {
    let configuration = try PostgresConfiguration(url: url)
    #expect(configuration.parameters["dbname"] == "d")
    #expect(configuration.preparedStatements)
  }

  @Test(arguments: [
    ("postgres://u:secret@h:1/d", "h:1/d"), ("postgres://u:secret@a:1,b:2/d", "a:1,b:2/d"),
    ("postgres://u:secret@a,b:2/d", "a:5432,b:2/d"), ("host=a,b port=3 dbname=d password=secret", "a:3,b:3/d"),
    ("postgres://u:secret@/d", "local socket:5432/d"),
  ]) func theTargetNamesEachServerWithItsPortAndNoPassword(url: String, target: String) throws {
    #expect(try PostgresConfiguration(url: url).target == target)
  }

  @Test(arguments: [
    ("postgres://h/d?prepared_statements=false", false), ("postgres://h/d?prepared_statements=true", true),
    ("postgres://h/d?sslmode=disable&prepared_statements=false&connect_timeout=3", false),
  ])
  func preparedStatementsAreSwitchedInTheURL(url: String, expected: Bool) throws {
    let configuration = try PostgresConfiguration(url: url)
    #expect(configuration.preparedStatements == expected)
    if url.contains("connect_timeout") { #expect(configuration.connectTimeout == .seconds(3)) }
  }

  @Test(arguments: [
    "postgres://h/d?prepared_statements=maybe", "postgres://h/d?no_such_option=1", "mysql://h/d", "postgres://h:x%zz/d",
  ])
  func badURLsAreRefused(url: String) {
    #expect(throws: PostgresError.self) { try PostgresConfiguration(url: url) }
  }

  @Test(
    "an error of a wrong URL repeats no part of the password",
    arguments: [
      "postgres://u:CANARY%zz@h/db", "postgres://u:CANARY%@h/db", "postgres://u:CANARY%4@h/db",
      "postgres://u:pw@CANARY@h/db", "postgres://u:CANARY@pw@h/db", "postgres://u:CANARY@@h/db",
      "postgres://u:CANARY/pw@h/db", "postgres://u:pw/CANARY@h/db", "postgres://u:1/CANARY@h/db",
      "postgres://u:CANARY?pw@x@h/db", "postgres://u:pw?x@CANARY@h/db", "postgres://u:x?CANARY/pw@h/db",
      "postgres://u:CANARY#pw@x@h/db", "postgres://u:p@[CANARY/db", "postgres://u:p@h:CANARY/db",
      "postgres://h/db?CANARY=1", "host=127.0.0.1 password=my CANARYsecret", "password='CANARY", "CANARY=1",
      "host=h password=my CANARY=secret", "host=pw@CANARY", "mysql://u:CANARY@h/db",
    ]) func noSecretInErrors(url: String)
  {
    let error = #expect(throws: PostgresError.self) { try PostgresConfiguration(url: url) }
    #expect(error.map { !"\($0)".contains("CANARY") } ?? false)
  }

  @Test(
    "escaped characters belong to the password, and a local socket may begin with @",
    arguments: [
      ("postgres://u:%25%40%2F%3A@h/d", "%@/:", "h"), ("postgres://u:a:b#c?d@h/d", "a:b#c?d", "h"),
      ("host=@sock dbname=d password='my pw'", "my pw", "@sock"), ("postgres://u:p@%40sock/d", "p", "@sock"),
      ("postgres://u:p@a:1,b:2/d", "p", "a,b"), ("postgres://u:p@[::1]:5/d", "p", "::1"),
    ]) func passwords(url: String, password: String, host: String) throws
  {
    let configuration = try PostgresConfiguration(url: url)
    #expect(configuration.parameters["password"] == password)
    #expect(configuration.parameters["host"] ?? "" == host)
  }

  @Test func everyHostBecomesItsAddresses() throws {
    let target = try ConnectionTarget(
      ["host": "a,/run/sock,b", "port": "1,2,3"],
      resolve: { host throws(PostgresError) in host == "a" ? ["10.0.0.1", "::1"] : ["10.0.0.2"] })
    #expect(target.parameters["host"] == "a,a,/run/sock,b")
    #expect(target.parameters["hostaddr"] == "10.0.0.1,::1,,10.0.0.2")
    #expect(target.parameters["port"] == "1,1,2,3")
    #expect(target.addresses.map { $0["hostaddr"] } == ["10.0.0.1", "::1", "", "10.0.0.2"])
    #expect(target.addresses.map { $0["port"] } == ["1", "1", "2", "3"])
  }

  @Test(
    "the server that answered last comes first if the URL asks for the primary",
    arguments: [("read-write", ["2", "1", "3"]), ("primary", ["2", "1", "3"]), ("any", ["1", "2", "3"])])
  func theLastServerComesFirst(attributes: String, ports: [String]) throws {
    let target = try ConnectionTarget(
      ["host": "a,b,c", "port": "1,2,3", "target_session_attrs": attributes],
      resolve: { _ throws(PostgresError) in ["10.0.0.1"] })
    #expect(target.addresses(beginningWith: target.addresses[1]).map { $0["port"] } == ports)
    #expect(target.addresses(beginningWith: ["host": "gone"]) == target.addresses)
  }

  @Test func oneNameThatResolvesIsEnough() throws {
    let gone = PostgresError(.connection, "no such host")
    let resolve = { (host: String) throws(PostgresError) -> [String] in
      guard host == "good" else { throw gone }
      return ["10.0.0.1"]
    }
    let target = try ConnectionTarget(["host": "bad,good"], resolve: resolve)
    #expect(target.parameters["hostaddr"] == "10.0.0.1")
    #expect(throws: gone) { try ConnectionTarget(["host": "bad"], resolve: resolve) }
  }

  @Test func nothingIsResolvedWhereAnAddressIsGiven() throws {
    let given = ["host": "a", "hostaddr": "10.0.0.1", "port": "5432"]
    let target = try ConnectionTarget(given, resolve: { _ throws(PostgresError) in [] })
    #expect(target.parameters == given && target.addresses == [given])
  }

  @Test("each address in a list is tried, whether or not it has a name and a port of its own") func addressesInLists()
    throws
  {
    let target = try ConnectionTarget(
      ["hostaddr": "10.0.0.1,10.0.0.2"], resolve: { _ throws(PostgresError) in [] })
    #expect(target.addresses.map { $0["hostaddr"] } == ["10.0.0.1", "10.0.0.2"])
    #expect(target.addresses.map { $0["port"] } == ["5432", "5432"])
    #expect(target.addresses.map(PostgresConfiguration.target) == ["10.0.0.1:5432/", "10.0.0.2:5432/"])
    let mixed = try ConnectionTarget(
      ["host": "a,b", "hostaddr": "10.0.0.1,", "port": "7"], resolve: { _ throws(PostgresError) in ["10.0.0.2"] })
    #expect(mixed.parameters == ["host": "a,b", "hostaddr": "10.0.0.1,10.0.0.2", "port": "7,7"])
  }

  @Test("the hosts of a service are known, and each that the URL names instead") func service() async throws {
    try await withServices("[films]\nhost=a,b\nport=1,2\ntarget_session_attrs=read-write\ndbname=reels\n") {
      let complete = PostgresConfiguration.completed(["service": "films", "dbname": "own"])
      #expect(complete["host"] == "a,b" && complete["port"] == "1,2" && complete["dbname"] == "own")
      #expect(complete["target_session_attrs"] == "read-write" && complete["gssencmode"] == nil)
      let (plain, given) = try (
        PostgresConfiguration(url: "postgres:///?service=films"),
        PostgresConfiguration(url: "postgres://c:3,d:4/?service=films")
      )
      #expect(plain.target == "a:1,b:2/reels" && given.target == "c:3,d:4/reels")
      let absent = ["service": "absent", "host": "a"]
      #expect(PostgresConfiguration.completed(absent).filter { absent[$0.key] != nil } == absent)
    }
  }

  @Test("an address in a service's file is that of the host that the URL names, and nothing of the file is read again")
  func addressOfAService() async throws {
    try await withServices("[films]\nhostaddr=10.0.0.9\nhost=/run/x\n") {
      let complete = PostgresConfiguration.completed(["service": "films", "host": "a", "port": ""])
      #expect(complete["host"] == "a" && complete["hostaddr"] == "10.0.0.9" && complete["port"] == "5432")
      #expect(complete["service"] == nil)
    }
  }

  @Test("an address in the environment is none of a host that is given") func addressInTheEnvironment() {
    setenv("PGHOSTADDR", "10.0.0.9", 1)
    defer { unsetenv("PGHOSTADDR") }
    #expect(PostgresConfiguration.completed(["host": "a"])["hostaddr"] == nil)
    #expect(PostgresConfiguration.completed(["dbname": "d"])["hostaddr"] == "10.0.0.9")
  }

  @Test func theSQLStateIsReadFromLibpqsMessage() {
    let refused = ConnectFailure.error(
      from: """
        connection to server at "127.0.0.1", port 5432 failed: FATAL:  28P01: password authentication failed for user "x"
        LOCATION:  auth_failed, auth.c:330
        """)
    #expect(refused.sqlState == "28P01")
    #expect(refused.isPermanent)
    #expect(!refused.isRetryable)
    #expect(!refused.message.contains("LOCATION"))
    let absent = ConnectFailure.error(
      from: "connection to server at \"::1\", port 5432 failed: refused\n\tIs it running?\n")
    #expect(absent.message.hasSuffix("port 5432 failed: refused; Is it running?"))
    #expect(absent.sqlState == nil)
    #expect(absent.isRetryable)
  }

  @Test func statementsAreNamedByContentTypesAndGeneration() {
    var cache = StatementCache(isEnabled: true)
    let statement = PostgresStatement("SELECT $1")
    let query = statement(.int32(1))
    guard case .prepare(let name) = cache.plan(for: query) else {
      Issue.record("not prepared")
      return
    }
    cache.didPrepare(name, statement)
    #expect(cache.plan(for: statement(.int32(2))) == .execute(name: name))
    #expect(cache.plan(for: statement(.int64(2))) != .execute(name: name))
    cache.forgetAll()
    #expect(cache.plan(for: query) != .prepare(name: name))
    #expect(StatementCache(isEnabled: false).plan(for: query) == .unnamed)
  }

  @Test func programsThatMakeStatementsAtRunTimeDoNotFillTheServer() {
    var cache = StatementCache(isEnabled: true)
    for number in 0..<StatementCache.limit {
      let query = PostgresQuery(PostgresStatement("SELECT \(number)"))
      if case .prepare(let name) = cache.plan(for: query) { cache.didPrepare(name, query.statement) }
    }
    #expect(cache.plan(for: PostgresQuery("SELECT 'one more'")) == .unnamed)
  }
}
