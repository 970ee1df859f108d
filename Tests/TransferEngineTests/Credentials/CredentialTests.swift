import Glibc
import ReelhaulCurl
import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct CredentialTests {
  @Test("every kind of credential becomes header fields")
  func kindsBecomeHeaderFields() throws {
    let all = try Credential.all(
      Array(
        """
        {"a": {"hosts": ["a.example"], "bearer": "t0k"},
         "b": {"hosts": ["b.example:8443", "*.c.example"], "user": "Aladdin", "password": "open sesame"},
         "c": {"hosts": ["[::1]"], "headers": {"X-Api-Key": "k", "X-Other": ""}, "allowHTTP": true}}
        """.utf8))
    #expect(all["a"]?.fields == [HeaderField(name: "Authorization", value: "Bearer t0k")])
    #expect(all["b"]?.fields == [HeaderField(name: "Authorization", value: "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")])
    #expect(all["c"]?.fields == [HeaderField(name: "X-Api-Key", value: "k"), HeaderField(name: "X-Other", value: "")])
    #expect(all.mapValues(\.allowsHTTP) == ["a": false, "b": false, "c": true])
  }

  @Test(
    "mistakes in the file are named without showing secrets",
    arguments: [
      (#"{"a": {"bearer": "hidden"}}"#, "a: \"hosts\" is missing"),
      (#"{"a": {"hosts": [], "bearer": "hidden"}}"#, "a: \"hosts\" is missing"),
      (#"{"a": {"hosts": ["h"]}}"#, "a: expected exactly one of bearer"),
      (
        #"{"a": {"hosts": ["h"], "bearer": "hidden", "user": "u", "password": "hidden"}}"#,
        "a: expected exactly one of bearer"
      ),
      (#"{"a": {"hosts": ["h"], "user": "u"}}"#, "a: expected exactly one of bearer"),
      (#"{"a": {"hosts": ["h"], "password": "hidden"}}"#, "a: expected exactly one of bearer"),
      (#"{"a": {"hosts": ["h"], "user": "u:v", "password": "hidden"}}"#, "must not contain a colon"),
      (#"{"a": {"hosts": ["h"], "bearrer": "hidden"}}"#, "a.bearrer: expected hosts"),
      (#"{"a": {"hosts": ["https://h/"], "bearer": "hidden"}}"#, "a.hosts[0]: expected HOST"),
      (#"{"a": {"hosts": ["h"], "bearer": "hidden\r\nX: y"}}"#, "cannot be sent"),
      (#"{"a": {"hosts": ["h"], "headers": {"Range": "hidden"}}}"#, "a.headers.Range: is set by the transfer"),
      (#"{"a": {"hosts": ["h"], "headers": {"X Y": "hidden"}}}"#, "cannot be sent"),
      (#"{"a": {"hosts": ["h"], "bearer": hidden}}"#, "a.bearer: expected a string"),
      (#"{"a": {"hosts": ["h"], "bearer": "hidden"}, "a": {}}"#, "twice"),
      ("", "nothing to read"), ("[]", "expected an object"),
    ])
  func mistakesAreNamedAndSecretsAreNot(text: String, problem: String) throws {
    let directory = try TemporaryDirectory()
    try write(Array(text.utf8), to: "\(directory.path)/c.json")
    let error = #expect(throws: UnusableFile.self) {
      try CredentialFile(path: "\(directory.path)/c.json").credentials()
    }
    let message = error?.description ?? ""
    #expect(message.contains(problem), "\(message)")
    #expect(!message.contains("hidden"))
  }

  @Test("a credential file that others can read is refused")
  func nobodyElseMayReadTheFile() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/c.json"
    try write(Array("{}".utf8), to: path)
    for (mode, isGood) in [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o660, false), (0o604, false)]
    {
      chmod(path, mode_t(mode))
      let isTaken = (try? CredentialFile(path: path).credentials()) != nil
      #expect(isTaken == isGood, "\(mode)")
    }
    #expect(throws: UnusableFile.self) { try CredentialFile(path: directory.path).credentials() }
    // Nobody ever writes to it.
    #expect(mkfifo("\(path).pipe", 0o600) == 0)
    #expect(throws: UnusableFile.self) { try CredentialFile(path: "\(path).pipe").credentials() }
    #expect(throws: UnusableFile.self) { try CertificateFile.check("\(path).pipe") }
    #expect(throws: UnusableFile.self) { try CredentialFile(path: "\(path).gone").credentials() }
  }

  @Test("the description of a credential shows no secret")
  func aDescriptionShowsNothing() {
    let credential = Credential(fields: [HeaderField(name: "Authorization", value: "hidden")], hosts: [])
    var dumped = ""
    dump(credential, to: &dumped)
    #expect(!"\(credential) \(String(reflecting: credential)) \(["a": credential]) \(dumped)".contains("hidden"))
  }

  @Test(
    "a credential matches complete host names and ports only",
    arguments: [
      ("media.example", "https://media.example/x", true), ("media.example", "https://MEDIA.example:443/", true),
      ("Media.Example", "https://media.example/", true), ("media.example", "https://media.example:8443/", false),
      ("media.example:8443", "https://media.example:8443/", true),
      ("media.example:8443", "https://media.example/", false),
      ("media.example:443", "https://media.example/", true),
      ("media.example", "https://a.media.example/", false),
      ("media.example", "https://media.example.evil.test/", false),
      ("media.example", "https://evilmedia.example/", false), ("media.example", "http://media.example/", false),
      ("*.media.example", "https://a.media.example/", true), ("*.media.example", "https://a.b.media.example/", true),
      ("*.media.example", "https://media.example/", false), ("*.media.example", "https://evilmedia.example/", false),
      ("[2001:db8::1]", "https://[2001:db8::1]/", true), ("[2001:db8::1]:8443", "https://[2001:db8::1]/", false),
      ("127.0.0.1", "https://2130706433/", true),
    ])
  func aHostIsMatchedWhole(host: String, url: String, matches: Bool) throws {
    let credential = Credential(fields: [], hosts: [try #require(CredentialHost(host))])
    #expect(try credential.isFor(#require(CurlURL(url))) == matches)
  }

  @Test("a credential is sent without TLS only if it allows this")
  func withoutTLSOnlyWhereAllowed() throws {
    let host = try #require(CredentialHost("a.example"))
    let url = try #require(CurlURL("http://a.example/"))
    #expect(Credential(fields: [], hosts: [host], allowsHTTP: true).isFor(url))
    #expect(!Credential(fields: [], hosts: [host]).isFor(url))
  }

  @Test(
    "invalid hosts are refused",
    arguments: ["", "*", "*.", "*.com", "a/b", "https://a", "u@a", "a b", "*.*.a", "a.*", "[::1", "a:x", "a:0x1"])
  func invalidHostsAreRefused(text: String) {
    #expect(CredentialHost(text) == nil)
  }
}
