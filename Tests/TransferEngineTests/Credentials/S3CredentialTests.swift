import ReelhaulSystem
import TaskCore
import Testing

@testable import TransferEngine

@Suite struct S3CredentialTests {
  @Test("an s3 form becomes keys and a place")
  func formsBecomeKeys() throws {
    let all = try Credential.all(
      Array(
        """
        {"aws": {"s3": {"accessKeyId": "AK", "secretAccessKey": "sk", "sessionToken": "t", "region": "eu-west-1"}},
         "own": {"s3": {"accessKeyId": "AK", "secretAccessKey": "sk", "endpoint": "http://store:9000"}, "allowHTTP": true},
         "host": {"s3": {"accessKeyId": "AK", "secretAccessKey": "sk", "endpoint": "https://store:9000", "pathStyle": false},
                  "hosts": ["other", "store:9000"]}}
        """.utf8))
    let aws = try #require(all["aws"]?.s3)
    #expect(
      aws
        == S3Credential(accessKeyID: "AK", secretAccessKey: "sk", sessionToken: "t", region: "eu-west-1", endpoint: nil)
    )
    #expect(!aws.pathStyle)
    let own = try #require(all["own"]?.s3)
    #expect(own.region == "us-east-1" && own.pathStyle && own.allowsHTTP && own.endpointURL == "http://store:9000")
    #expect(all["host"]?.s3?.pathStyle == false)
    #expect(all.values.allSatisfy { $0.fields.isEmpty })
  }

  @Test("secrets are hidden in a text, unless they are so short that they are in any word")
  func secretsAreHidden() {
    for (secret, token, text) in [
      ("s", "t", "The specified key does not exist: abcd"), ("abc", nil, "The specified key does not exist: abcd"),
      ("abcd", "exist", "The specified key does not •••: •••"),
    ] as [(String, String?, String)] {
      let keys = S3Credential(
        accessKeyID: "AK", secretAccessKey: secret, sessionToken: token, region: "eu-west-1", endpoint: nil)
      #expect(keys.hidden(in: "The specified key does not exist: abcd") == text)
    }
  }

  @Test(
    "mistakes in an s3 form or a command are named without showing secrets",
    arguments: [
      (#""s3": {}"#, "a.s3: \"accessKeyId\" is missing"),
      (#""s3": {"accessKeyId": "hidden"}"#, "a.s3: \"secretAccessKey\" is missing"),
      (#""s3": {"secretAccessKey": "hidden"}"#, "a.s3: \"accessKeyId\" is missing"),
      (#""s3": {"accessKeyId": "hid/den", "secretAccessKey": "hidden"}"#, "a.s3.accessKeyId: it cannot be"),
      (#""s3": {"accessKeyId": "", "secretAccessKey": "hidden"}"#, "a.s3.accessKeyId: it cannot be"),
      (#""s3": {"accessKeyId": "k", "secretAccessKey": ""}"#, "a.s3.secretAccessKey: it is empty"),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "sessionToken": "hidden\n"}"#,
        "a.s3.sessionToken: it cannot"
      ),
      (#""s3": {"accessKeyID": "hidden"}"#, "a.s3.accessKeyID: expected accessKeyId, secretAccessKey"),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "region": "evil.test/"}"#,
        "a.s3.region: expected a region"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "endpoint": "store:9000"}"#, "a.s3.endpoint: expected"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "endpoint": "https://u:hidden@store"}"#,
        "a.s3.endpoint: expected"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "endpoint": "http://store"}"#,
        "a.s3.endpoint: an http endpoint needs \"allowHTTP\": true"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden", "endpoint": "https://store:9000"}, "hosts": ["store"]"#,
        "a.hosts: they do not contain the endpoint's host"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden"}, "hosts": ["store"]"#,
        "a.hosts: they do not contain the endpoint's host"
      ),
      (
        #""s3": {"accessKeyId": "k", "secretAccessKey": "hidden"}, "bearer": "hidden""#,
        "a: expected exactly one of bearer"
      ),
      (#""command": ["p"], "bearer": "hidden", "hosts": ["h"]"#, "a: expected exactly one of bearer"),
      (#""command": []"#, "a.command: expected a program and arguments"),
      (#""command": [""]"#, "a.command: expected a program and arguments"),
      (#""command": "hidden""#, "a.command: expected an array"),
      (#""command": ["p", "hidden\u0000"]"#, "a.command[1]: an argument must not"),
      (#""command": ["p"], "s3": {"accessKeyId": "hidden"}"#, "a.s3: the command tells the keys"),
      (#""command": ["p"], "expiration": "2026-11-21T14:17:26Z""#, "a.expiration: expected hosts"),
      (#""AccessKeyId": "hidden""#, "a.AccessKeyId: expected hosts"),
    ])
  func mistakesAreNamed(members: String, problem: String) throws {
    let directory = try TemporaryDirectory()
    try write(Array(#"{"a": {\#(members)}}"#.utf8), to: "\(directory.path)/c.json")
    let error = #expect(throws: UnusableFile.self) {
      try CredentialFile(path: "\(directory.path)/c.json").credentials()
    }
    let message = error?.description ?? ""
    #expect(message.contains(problem), "\(message)")
    #expect(!message.contains("hidden"))
  }

  @Test("descriptions show no secret")
  func descriptions() throws {
    let keys = S3Credential(accessKeyID: "hidden", secretAccessKey: "hidden", sessionToken: "hidden")
    let all = try Credential.all(Array(#"{"a": {"command": ["p", "hidden"]}}"#.utf8))
    let command = try #require(all["a"]?.command)
    var dumped = ""
    dump(keys, to: &dumped)
    dump(command, to: &dumped)
    #expect(
      !"\(keys) \(String(reflecting: keys)) \(command) \(String(reflecting: command)) \(dumped)".contains("hidden"))
  }
}
