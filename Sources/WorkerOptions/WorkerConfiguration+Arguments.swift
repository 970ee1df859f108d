import CommandLineKit
import ReelhaulKafka
import ReelhaulSystem
import TransferEngine
import WorkerCore

extension WorkerConfiguration {
  /// - Parameter hints: Sentences that the message of a missing setting adds.
  package init(_ arguments: Arguments, hints: [String] = []) throws {
    // The URL is parsed here only to find mistakes in it. A worker keeps trying if the database is only unreachable.
    _ = try FleetSettings.postgres(arguments, hints: hints)
    var settings = WorkerSettings()
    settings.topics = try FleetSettings.topics(arguments)
    settings.concurrency = arguments.integer(.concurrency).map { Int($0) } ?? settings.concurrency
    settings.leaseSeconds = arguments.integer(.lease).map { Int($0) } ?? settings.leaseSeconds
    settings.drainLimit = arguments.integer(.drain).map { .seconds($0) } ?? settings.drainLimit
    settings.labels = try KeyValueList.parse(arguments[.labels] ?? "", of: .labels)
    try self.init(
      kafka: FleetSettings.kafka(arguments, hints: hints), postgres: arguments[.postgres] ?? "",
      storage: arguments.storageRoots(),
      allowedNetworks: Self.networks(arguments[.allowNetworks] ?? ""), settings: settings)
    rate = arguments.bytes(.workerRate).flatMap { $0 > 0 ? $0 : nil }
    hostConnections = arguments.integer(.hostConnections).map { Int($0) } ?? hostConnections
    minFree = try Self.floor(arguments[.minFree] ?? "")
    telemetry = try FleetSettings.telemetry(arguments.settings)
    caFile = arguments[.caFile]
    credentials = arguments[.credentials]
    hookSecret = try Self.secret(arguments[.hookSecret] ?? "")
    awsCredentials = arguments[flag: .awsCredentials]
    try Self.check(.caFile, caFile) { try CertificateFile.check($0) }
    try Self.check(.credentials, credentials) { _ = try CredentialFile(path: $0).credentials() }
    let address = try Self.address(arguments[.metricsAddress] ?? "")
    if let port = arguments.integer(.metricsPort), port > 0 { metrics = (address, Int(port)) }
    dealsCommands = arguments[flag: .dealCommands]
    initialisesStorage = arguments[flag: .initStorage]
  }

  /// All mistakes in a worker's settings, except the addresses of its services and the contents of the files that options
  /// name.
  package static func mistakes(in settings: Settings) -> [UsageError] {
    let mistakes: [UsageError] = OptionSpec.working.compactMap { option in
      do throws(UsageError) {
        let text = try settings.value(of: option) ?? ""
        switch option {
        case .allowNetworks: _ = try networks(text)
        case .metricsAddress where !text.isEmpty: _ = try address(text)
        case .minFree where !text.isEmpty: _ = try floor(text)
        case .labels: _ = try KeyValueList.parse(text, of: option)
        case .hookSecret: _ = try secret(text)
        default: break
        }
        return nil
      } catch {
        return error
      }
    }
    do throws(UsageError) {
      _ = try FleetSettings.telemetry(settings)
      return mistakes
    } catch {
      return mistakes + [error]
    }
  }

  private static func networks(_ text: String) throws(UsageError) -> [CIDR] {
    guard !text.isEmpty else { return [] }
    let setting = OptionSpec.allowNetworks.setting
    guard let networks = CommaList.parse(text) else {
      throw UsageError("\(setting) must be \(OptionSpec.allowNetworks.valueName), not \"\(text)\"")
    }
    do throws(InvalidNetwork) {
      return try networks.map { text throws(InvalidNetwork) in try CIDR(text) }
    } catch {
      throw UsageError("\(setting): \(error)")
    }
  }

  /// What tasks leave free of a volume; nil if nothing is set, or something wrong.
  package static func minFree(in settings: Settings) -> ReservePolicy.Floor? {
    guard let text = try? settings.value(of: .minFree) else { return nil }
    return try? floor(text)
  }

  private static func floor(_ text: String) throws(UsageError) -> ReservePolicy.Floor {
    if text.hasSuffix("%"), let percent = Int(text.dropLast()), (0..<100).contains(percent) { return .percent(percent) }
    if let size = ByteCount(text) { return .bytes(size.bytes) }
    throw UsageError(
      "\(OptionSpec.minFree.setting) must be a number of bytes such as 10GiB, or 0% to 99%, not \"\(text)\"")
  }

  private static func secret(_ text: String) throws(UsageError) -> String? {
    guard !text.isEmpty else { return nil }
    guard HookSignature.key(text) != nil else {
      throw UsageError("\(OptionSpec.hookSecret.setting) must be a text, or whsec_ and Base64")
    }
    return text
  }

  private static func address(_ text: String) throws(UsageError) -> String {
    guard IPAddress(text) != nil else {
      throw UsageError("\(OptionSpec.metricsAddress.setting) must be an IP address, not \"\(text)\"")
    }
    return text
  }

  /// Checks a file before the worker starts: with a wrong file, the worker would fail task after task.
  private static func check(
    _ option: OptionSpec, _ path: String?, _ body: (String) throws -> Void
  ) throws(UsageError) {
    guard let path else { return }
    do {
      try body(path)
    } catch {
      throw UsageError("\(option.setting): \(error)", hint: "'reelhaul doctor' checks it too.")
    }
  }
}
