import CommandLineKit
import Glibc
import System
import TestKit
import Testing
import Worker

@testable import reelhaul

@Suite struct WorkerArgumentsTests {
  private func configuration(_ words: String..., environment: [String: String] = [:]) throws -> WorkerConfiguration {
    let services = ["REELHAUL_KAFKA": "127.0.0.1:9092", "REELHAUL_POSTGRES": "postgres://a@127.0.0.1/a"]
    let parser = CommandParser(Program.spec, settings: Settings(environment: services.merging(environment) { $1 }))
    guard case .run(let arguments) = try parser.parse(["worker"] + words) else { throw UsageError("nothing to run") }
    return try WorkerConfiguration(arguments)
  }

  /// Whichever of the two gave it.
  @Test(arguments: [
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
    let empty = "\(directory.path)/empty"
    _ = try FileDescriptor.open(empty, O_WRONLY | O_CREAT, mode: 0o600)
    let error = #expect(throws: UsageError.self) { try configuration(flag, empty) }
    #expect(error?.message.hasPrefix("\(flag) (\(key)): \(empty)") == true, "\(error?.message ?? "")")
  }

  @Test func settingsThatNothingReadsAreNamed() {
    let settings = Settings(
      environment: ["REELHAUL_CONCURENCY": "9", "REELHAUL_KAFKA_LINGER_MS": "5", "PATH": "/bin"],
      file: ["REELHAUL_WHATEVER": "1", "REELHAUL_STORAGE": "default=/srv"])
    #expect(
      UnknownSettings.sentences(settings) == [
        "REELHAUL_CONCURENCY is no setting of reelhaul: did you mean REELHAUL_CONCURRENCY?",
        "REELHAUL_WHATEVER is no setting of reelhaul",
      ])
  }

  @Test func networksAreCheckedWithTheirSetting() throws {
    #expect(try configuration("--allow-networks", "10.0.0.0/8,::1").allowedNetworks.count == 2)
    let error = #expect(throws: UsageError.self) { try configuration("--allow-networks", "10.0.0.1/8") }
    #expect(
      error?.message.hasPrefix("--allow-networks (REELHAUL_ALLOW_NETWORKS): \"10.0.0.1/8\" is not a network") == true)
  }
}
