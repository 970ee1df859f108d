import CommandLineKit
import Glibc
import ReelhaulKafka
import ReelhaulSystem
import TaskAdvice
import TestKit
import Testing
import TransferEngine
import WorkerCore
import WorkerOptions

@testable import reelhaul

@Suite struct WorkerArgumentsTests {
  private func configuration(_ words: String..., environment: [String: String] = [:]) throws -> WorkerConfiguration {
    let services = ["REELHAUL_KAFKA": "127.0.0.1:9092", "REELHAUL_POSTGRES": "postgres://a@127.0.0.1/a"]
    let parser = CommandParser(Program.spec, settings: Settings(environment: services.merging(environment) { $1 }))
    guard case .run(let arguments) = try parser.parse(["worker"] + words) else { throw UsageError("nothing to run") }
    return try WorkerConfiguration(arguments)
  }

  @Test("a worker takes all of its settings") func everySettingIsRead() throws {
    let worker = try configuration(environment: [
      "REELHAUL_TOPIC_PREFIX": "films.", "REELHAUL_STORAGE": "default=/srv,b=/b", "REELHAUL_CONCURRENCY": "7",
      "REELHAUL_LEASE_SECONDS": "9", "REELHAUL_DRAIN_SECONDS": "11", "REELHAUL_LABELS": "site=a,rack=2",
      "REELHAUL_ALLOW_NETWORKS": "10.0.0.0/8", "REELHAUL_RATE": "5MB", "REELHAUL_HOST_CONNECTIONS": "3",
      "REELHAUL_MIN_FREE": "10GiB", "REELHAUL_HOOK_SECRET": "quiet", "REELHAUL_DEAL_COMMANDS": "1",
      "REELHAUL_INIT_STORAGE": "1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
    ])
    #expect(worker.kafka.bootstrap == "127.0.0.1:9092" && worker.postgres == "postgres://a@127.0.0.1/a")
    #expect(worker.settings.topics == TopicPlan(prefix: "films."))
    #expect(worker.storage == ["default": "/srv", "b": "/b"])
    #expect(worker.settings.concurrency == 7)
    #expect(worker.settings.leaseSeconds == 9)
    #expect(worker.settings.drainLimit == .seconds(11))
    #expect(worker.settings.labels == ["site": "a", "rack": "2"])
    #expect(try worker.allowedNetworks == [CIDR("10.0.0.0/8")])
    #expect(worker.rate == 5_000_000)
    #expect(worker.hostConnections == 3)
    #expect(worker.minFree == .bytes(10 << 30))
    #expect(worker.hookSecret == "quiet")
    #expect(worker.dealsCommands && worker.initialisesStorage && worker.telemetry != nil)
    let plain = try configuration()
    #expect(plain.rate == nil && plain.hookSecret == nil && plain.telemetry == nil)
    #expect(!plain.dealsCommands && !plain.initialisesStorage)
    #expect(try configuration("--rate", "0").rate == nil)
    #expect(try configuration("--min-free", "5%").minFree == .percent(5))
  }

  @Test("AWS's own keys are used only where the settings say so")
  func awsCredentialsAreAskedFor() throws {
    #expect(try !configuration(environment: ["AWS_ACCESS_KEY_ID": "x"]).awsCredentials)
    #expect(try configuration("--aws-credentials").awsCredentials)
    #expect(try configuration(environment: ["REELHAUL_AWS_CREDENTIALS": "1"]).awsCredentials)
  }

  @Test("metrics are served only at a port that is given, and on this machine unless another address is")
  func metricsAreServedOnlyWhereAsked() throws {
    #expect(try configuration().metrics == nil)
    #expect(try configuration(environment: ["REELHAUL_METRICS_ADDRESS": "0.0.0.0"]).metrics == nil)
    #expect(try configuration("--metrics-port", "9464").metrics ?? ("", 0) == ("127.0.0.1", 9464))
    let environment = ["REELHAUL_METRICS_ADDRESS": "::", "REELHAUL_METRICS_PORT": "1"]
    #expect(try configuration(environment: environment).metrics ?? ("", 0) == ("::", 1))
  }

  /// The value may come from the flag or from the environment.
  @Test(
    "a file that cannot be used is named with its flag and variable",
    arguments: [
      ("--ca-file", "REELHAUL_CA_FILE"), ("--credentials", "REELHAUL_CREDENTIALS"),
    ])
  func filesThatCannotBeUsedAreNamedWithTheirSetting(_ flag: String, _ key: String) throws {
    let directory = try TemporaryDirectory()
    let absent = "\(directory.path)/absent"
    for error in [
      #expect(throws: UsageError.self) { try configuration(flag, absent) },
      #expect(throws: UsageError.self) { try configuration(environment: [key: absent]) },
    ] {
      #expect(error?.message == "\(flag) (\(key)): open \(absent): No such file or directory")
    }
    let telemetry = [
      "OTEL_EXPORTER_OTLP_ENDPOINT": "https://a.example", "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": absent,
    ]
    let wrong = #expect(throws: UsageError.self) { try configuration(environment: telemetry) }
    #expect(wrong?.message.hasPrefix("OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE: open \(absent)") == true)
    let empty = "\(directory.path)/empty"
    _ = try FileDescriptor.open(empty, O_WRONLY | O_CREAT, mode: 0o600)
    let error = #expect(throws: UsageError.self) { try configuration(flag, empty) }
    #expect(error?.message.hasPrefix("\(flag) (\(key)): \(empty)") == true, "\(error?.message ?? "")")
  }

  /// All mistakes, however each is checked. A worker that does not start reports only the first one.
  @Test("the doctor reports every mistake in a worker's settings")
  func theDoctorTellsOfEveryMistake() throws {
    let wrong = [
      "REELHAUL_RATE": "much", "REELHAUL_LEASE_SECONDS": "2", "REELHAUL_CONCURRENCY": "0",
      "REELHAUL_DRAIN_SECONDS": "x",
      "REELHAUL_LOG_LEVEL": "loud", "REELHAUL_INIT_STORAGE": "perhaps", "REELHAUL_LABELS": "a",
      "REELHAUL_ALLOW_NETWORKS": "10.0.0.1/8", "REELHAUL_METRICS_PORT": "65536",
      "REELHAUL_METRICS_ADDRESS": "localhost", "REELHAUL_HOOK_SECRET": "whsec_!!!",
      "OTEL_EXPORTER_OTLP_ENDPOINT": "127.0.0.1:4318",
    ]
    guard
      case .run(let arguments) = try CommandParser(Program.spec, settings: Settings(environment: wrong)).parse([
        "doctor"
      ])
    else { throw UsageError("nothing to run") }
    let findings = MachineDoctor(arguments: arguments).examine().filter { $0.status == .misconfigured }
    #expect(findings.allSatisfy { $0.check == "settings" })
    for name in wrong.keys {
      #expect(findings.contains { $0.message.contains(name) }, "\(name)")
      #expect(throws: UsageError.self, "\(name)") { try configuration(environment: [name: wrong[name] ?? ""]) }
    }
    #expect(findings.count == wrong.count && findings.exitCode == .usage)
    #expect(WorkerConfiguration.mistakes(in: Settings(environment: ["REELHAUL_RATE": "5MB"])) == [])
  }

  @Test("the doctor tells what is wrong with a storage root, and what to do")
  func theDoctorExaminesRoots() throws {
    let directory = try TemporaryDirectory()
    func finding(_ more: [String: String] = [:]) throws -> Finding {
      let settings = Settings(environment: more.merging(["REELHAUL_STORAGE": "a=\(directory.path)"]) { $1 })
      guard case .run(let arguments) = try CommandParser(Program.spec, settings: settings).parse(["doctor"]) else {
        throw UsageError("nothing to run")
      }
      return try #require(MachineDoctor(arguments: arguments).examine().first { $0.check == "storage a" })
    }
    let own = "\(directory.path)/.reelhaul"
    let unmarked = "Mount the storage's volume. If this is a new one, mark it with 'reelhaul migrate'."
    #expect(try finding().advice == unmarked)
    try Volume.initialise(name: "a", path: directory.path)
    #expect(try [.ok, .warning].contains(finding().status))
    let full = try finding(["REELHAUL_MIN_FREE": "900TiB"])
    #expect(full.status == .failed && full.message.hasSuffix("tasks leave 900 TiB free: none can write there"))
    #expect(full.advice == "Lower REELHAUL_MIN_FREE.")
    #expect(rename("\(own)/volume", "\(own)/lost") == 0)
    #expect(try finding().advice == unmarked)
    try FileDescriptor.open("\(own)/staging/part", O_WRONLY | O_CREAT).write("half", at: 0)
    #expect(try finding().advice?.hasPrefix("It has staging files, so its mark was lost.") == true)
    #expect(rename("\(own)/lost", "\(own)/volume") == 0 && rename("\(own)/staging", "\(own)/s") == 0)
    #expect(try finding().advice == "If the right volume is mounted, 'reelhaul migrate' makes it.")
  }

  @Test("settings that up ignores are named")
  func settingsThatUpDoesNotFollowAreNamed() {
    let settings = Settings(
      environment: [
        "REELHAUL_ALLOW_NETWORKS": "10.0.0.0/8", "REELHAUL_LEASE_SECONDS": "9", "REELHAUL_KAFKA": "",
        "REELHAUL_CONFIG": "a", "REELHAUL_STORAGE": "default=/srv",
      ],
      file: ["REELHAUL_RATE": "1MB", "REELHAUL_KAFKA_LINGER_MS": "5"])
    let workers = [
      "REELHAUL_ALLOW_NETWORKS": "127.0.0.0/8", "REELHAUL_LEASE_SECONDS": "9", "REELHAUL_KAFKA": "127.0.0.1:9",
      "REELHAUL_STORAGE": "default=/srv",
    ]
    #expect(
      UnknownSettings.unfollowed(settings, workers)
        == "'up' uses its own values and ignores REELHAUL_ALLOW_NETWORKS, REELHAUL_KAFKA_LINGER_MS, REELHAUL_RATE."
    )
    #expect(UnknownSettings.unfollowed(Settings(environment: workers), workers) == nil)
  }

  /// A shell may have sourced the reelhaul.env of an `up`.
  @Test("compose.yaml takes no setting of another fleet from the shell")
  func composeHasItsOwnNames() throws {
    let root = #filePath.split(separator: "/").dropLast(3).map { "/\($0)" }.joined()
    let file = String(decoding: try TestFleet.contents("\(root)/compose.yaml"), as: UTF8.self)
    let names = file.matches(of: /\$\{?([A-Za-z_]+)/).map { String($0.1) }
    #expect(names.count == 3 && names.allSatisfy { $0.hasPrefix("REELHAUL_COMPOSE_") }, "\(names)")
    let settings = Settings(environment: Dictionary(uniqueKeysWithValues: names.map { ($0, "1") }))
    #expect(UnknownSettings.sentences(settings) == [])
  }

  @Test("settings that nothing reads are named")
  func settingsThatNothingReadsAreNamed() {
    let settings = Settings(
      environment: ["REELHAUL_CONCURENCY": "9", "REELHAUL_KAFKA_LINGER_MS": "5", "PATH": "/bin"],
      file: ["REELHAUL_WHATEVER": "1", "REELHAUL_STORAGE": "default=/srv"])
    #expect(
      UnknownSettings.sentences(settings) == [
        "REELHAUL_CONCURENCY is not a setting of reelhaul: did you mean REELHAUL_CONCURRENCY?",
        "REELHAUL_WHATEVER is not a setting of reelhaul",
      ])
  }

  @Test("an invalid network is named with its setting")
  func networksAreCheckedWithTheirSetting() throws {
    #expect(try configuration("--allow-networks", "10.0.0.0/8,::1").allowedNetworks.count == 2)
    let error = #expect(throws: UsageError.self) { try configuration("--allow-networks", "10.0.0.1/8") }
    #expect(
      error?.message.hasPrefix("--allow-networks (REELHAUL_ALLOW_NETWORKS): \"10.0.0.1/8\" is not a network") == true)
  }
}
