import Glibc
import ReelhaulSystem
import Testing

@testable import TransferEngine

@Suite struct AWSCredentialsTests {
  private final class Home {
    let directory: TemporaryDirectory

    init(credentials: String? = nil, config: String? = nil) throws {
      directory = try TemporaryDirectory()
      if let credentials { try TextFile.write(credentials, to: "\(directory.path)/credentials") }
      if let config { try TextFile.write(config, to: "\(directory.path)/config") }
    }

    func environment(_ variables: [String: String] = [:]) -> [String: String] {
      [
        "HOME": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "\(directory.path)/credentials",
        "AWS_CONFIG_FILE": "\(directory.path)/config",
      ].merging(variables) { _, new in new }
    }
  }

  private static let keys = """
    # comment
    [default]
    aws_access_key_id = D1
    aws_secret_access_key=d/2=+
    [other profile]
    aws_access_key_id=O1
    aws_secret_access_key=O2
    aws_session_token=O3
    """
  private static let config = """
    [default]
    region = eu-west-1
    output = json
    s3 =
        addressing_style = path
        max_concurrent_requests = 20
    [profile "other profile"]
    region = eu-west-2
    endpoint_url = https://store.example:9000
    """

  @Test("variables come before files, and a profile is chosen by its name")
  func order() throws {
    let home = try Home(credentials: Self.keys, config: Self.config)
    #expect(
      try AWSCredentials.standard(environment: home.environment())
        == S3Credential(accessKeyID: "D1", secretAccessKey: "d/2=+", region: "eu-west-1", pathStyle: true))
    #expect(
      try AWSCredentials.standard(environment: home.environment(["AWS_PROFILE": "other profile"]))
        == S3Credential(
          accessKeyID: "O1", secretAccessKey: "O2", sessionToken: "O3", region: "eu-west-2",
          endpoint: "https://store.example:9000"))
    let variables = [
      "AWS_ACCESS_KEY_ID": "E1", "AWS_SECRET_ACCESS_KEY": "E2", "AWS_SESSION_TOKEN": "E3",
      "AWS_DEFAULT_REGION": "eu-north-1", "AWS_ENDPOINT_URL": "https://any.example",
    ]
    #expect(
      try AWSCredentials.standard(environment: home.environment(variables))
        == S3Credential(
          accessKeyID: "E1", secretAccessKey: "E2", sessionToken: "E3", region: "eu-north-1",
          endpoint: "https://any.example", pathStyle: true))
    let more = variables.merging(["AWS_REGION": "eu-south-1", "AWS_ENDPOINT_URL_S3": "https://s3.example"]) { $1 }
    let found = try AWSCredentials.standard(environment: home.environment(more))
    #expect(found?.region == "eu-south-1")
    #expect(found?.endpoint == "https://s3.example")
  }

  @Test("id, secret and token come from one place") func onePlace() throws {
    let home = try Home(
      credentials: Self.keys, config: Self.config.replacing("output = json", with: "aws_session_token = T"))
    #expect(try #require(try AWSCredentials.standard(environment: home.environment())).sessionToken == nil)
    let variables = ["AWS_ACCESS_KEY_ID": "E1", "AWS_SECRET_ACCESS_KEY": "E2", "AWS_PROFILE": "other profile"]
    #expect(try #require(try AWSCredentials.standard(environment: home.environment(variables))).sessionToken == nil)
  }

  @Test("without keys there is no credential")
  func nothing() throws {
    let home = try Home()
    #expect(try AWSCredentials.standard(environment: home.environment()) == nil)
    #expect(try AWSCredentials.standard(environment: [:]) == nil)
  }

  @Test(
    "what cannot be used is told without showing secrets",
    arguments: [
      (["AWS_ACCESS_KEY_ID": "hidden"], "must be set together"),
      (["AWS_SECRET_ACCESS_KEY": "hidden"], "must be set together"),
      (["AWS_PROFILE": "missing"], "no such profile"), (["AWS_PROFILE": "half"], "only one of"),
      (["AWS_PROFILE": "sso"], "sso_session"), (["AWS_PROFILE": "role"], "role_arn"),
      (["AWS_PROFILE": "bad"], "cannot be sent"),
      (["AWS_PROFILE": "good", "AWS_REGION": "evil.test/"], "not the name of a region"),
      (["AWS_PROFILE": "good", "AWS_ENDPOINT_URL": "store"], "not an http or https URL"),
      (["AWS_PROFILE": "good", "AWS_ENDPOINT_URL": "http://store"], "without TLS"),
    ])
  func mistakes(variables: [String: String], problem: String) throws {
    let home = try Home(
      credentials: """
        [half]
        aws_access_key_id = hidden
        [bad]
        aws_access_key_id = hid/den
        aws_secret_access_key = hidden
        [role]
        aws_access_key_id = hidden
        aws_secret_access_key = hidden
        [good]
        aws_access_key_id = hidden
        aws_secret_access_key = hidden
        """,
      config: """
        [profile sso]
        sso_session = x
        [profile role]
        role_arn = arn:aws:iam::1:role/x
        source_profile = role
        """)
    let error = #expect(throws: UnusableFile.self) {
      try AWSCredentials.standard(environment: home.environment(variables))
    }
    #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    #expect(error?.description.contains("hid") == false)
  }

  @Test("an unreadable file is an error, not no credential")
  func unreadable() throws {
    let directory = try TemporaryDirectory()
    #expect(throws: UnusableFile.self) {
      try AWSCredentials.standard(environment: ["AWS_SHARED_CREDENTIALS_FILE": directory.path])
    }
    // Nobody ever writes to it.
    #expect(mkfifo("\(directory.path)/pipe", 0o600) == 0)
    #expect(throws: UnusableFile.self) {
      try AWSCredentials.standard(environment: ["AWS_CONFIG_FILE": "\(directory.path)/pipe"])
    }
    let keys = ["AWS_CONFIG_FILE": "/dev/null", "AWS_ACCESS_KEY_ID": "E1", "AWS_SECRET_ACCESS_KEY": "E2"]
    #expect(try AWSCredentials.standard(environment: keys)?.accessKeyID == "E1")
    // The other file counts.
    let home = try Home(config: "[default]\nregion = eu-west-9\n")
    let beside = home.environment(keys.filter { $0.key != "AWS_CONFIG_FILE" }).merging(
      ["AWS_SHARED_CREDENTIALS_FILE": "/dev/null"]) { $1 }
    #expect(try AWSCredentials.standard(environment: beside)?.region == "eu-west-9")
    #expect(throws: UnusableFile.self) {
      try AWSCredentials.standard(environment: keys.merging(["AWS_PROFILE": "other"]) { $1 })
    }
  }
}
