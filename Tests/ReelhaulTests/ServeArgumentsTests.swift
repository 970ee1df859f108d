import CommandLineKit
import ControlAPI
import Testing

@testable import reelhaul

@Suite struct ServeArgumentsTests {
  private func address(_ words: [String]) throws -> ServeAddress {
    let parser = CommandParser(Program.spec, settings: Settings(environment: [:]))
    guard case .run(let arguments) = try parser.parse(["serve"] + words) else { throw UsageError("nothing to run") }
    return try ServeAddress(arguments)
  }

  @Test(
    "who can be reached by others needs tokens, and loopback only if it is asked for",
    arguments: [
      ([], false), (["--address", "127.0.0.2"], false), (["--address", "::1"], false),
      (["--tokens", "required"], true),
      (["--address", "0.0.0.0"], true), (["--address", "::"], true), (["--address", "10.0.0.1"], true),
      (["--address", "0.0.0.0", "--tokens", "required"], true), (["--tokens", "off"], false),
    ])
  func tokens(_ words: [String], _ isNeeded: Bool) throws {
    #expect(try address(words).settings.requiresTokens == isNeeded)
  }

  @Test(
    "nobody can do without tokens what others can reach",
    arguments: ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "169.254.0.1"])
  func open(_ host: String) {
    let error = #expect(throws: UsageError.self) { try address(["--address", host, "--tokens", "off"]) }
    #expect(error?.message.contains("--tokens off is for loopback") == true)
  }

  @Test("only proxies that are named are believed") func proxies() throws {
    let isProxy = try address(["--trusted-proxy", "10.0.0.0/8", "--trusted-proxy", "::1"]).settings.isProxy
    #expect(["10.1.2.3", "::1"].allSatisfy(isProxy))
    #expect(!["192.0.2.1", "127.0.0.1", "proxy.example", ""].contains(where: isProxy))
    let others = try address([]).settings.isProxy
    #expect(!["10.1.2.3", "192.0.2.1", "127.0.0.1", "::1", ""].contains(where: others))
    #expect(throws: UsageError.self) { try address(["--trusted-proxy", "10.0.0.1/8"]) }
  }

  @Test("every other flag of serve is read, and without flags nothing is open") func flags() throws {
    let plain = try address([]).settings
    #expect(!plain.hasOpenMetrics)
    #expect(plain.requestsPerSecond == nil)
    #expect(plain.corsOrigins == [])
    #expect(plain.publicOrigin.isEmpty && plain.prefix.isEmpty)
    #expect(plain.names == ["127.0.0.1"])
    let settings = try address([
      "--open-metrics", "--requests-per-second", "7", "--cors-origin", "https://Tools.example", "--cors-origin",
      "http://localhost:3000", "--name", "Mill", "--name", "mill.example", "--public-url",
      "https://Films.example:8443/reelhaul/",
    ]).settings
    #expect(settings.hasOpenMetrics)
    #expect(settings.requestsPerSecond == 7)
    #expect(settings.corsOrigins == ["https://tools.example", "http://localhost:3000"])
    #expect(settings.publicOrigin == "https://films.example:8443")
    #expect(settings.prefix == "/reelhaul")
    #expect(settings.names == ["127.0.0.1", "mill", "mill.example", "films.example"])
    #expect(try address(["--public-url", "https://a.example/a", "--path-prefix", "/b/"]).settings.prefix == "/b")
    #expect(try address(["--address", "::1"]).settings.names == ["[::1]"])
  }
}
