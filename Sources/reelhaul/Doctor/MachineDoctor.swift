import CommandLineKit
import Glibc
import ReelhaulSystem
import TaskCore
import TransferEngine
import WorkerCore
import WorkerOptions

/// Checks this machine for a worker: storage roots, the files of its configuration, and limits.
struct MachineDoctor {
  /// Each transfer needs a few descriptors for each of its connections.
  private static let descriptors: UInt64 = 4096
  private static let lowSpace: Int64 = 1 << 30

  let arguments: Arguments

  func examine() -> [Finding] {
    settings() + storage() + [caFile(), credentials()].compactMap { $0 } + [openFiles()]
  }

  private func settings() -> [Finding] {
    UnknownSettings.sentences(arguments.settings).map { Finding("settings", .warning, $0) }
      + WorkerConfiguration.mistakes(in: arguments.settings).map {
        Finding("settings", .misconfigured, $0.message, advice: "Correct it: workers do not start with it.")
      }
  }

  private func storage() -> [Finding] {
    guard let text = arguments[.storage], !text.isEmpty else {
      return [
        Finding(
          "storage", .skipped, "no roots are configured here",
          advice: "Workers need them: REELHAUL_STORAGE=default=/srv/videos.")
      ]
    }
    do {
      return try Storage.roots(parsing: text).sorted { $0.key < $1.key }.map(root)
    } catch {
      return [
        Finding(
          "storage", .misconfigured, "\(error)", advice: "Correct REELHAUL_STORAGE: workers do not start with it.")
      ]
    }
  }

  private func root(_ name: String, _ path: String) -> Finding {
    let check = "storage \(name)"
    var status = stat()
    guard stat(path, &status) == 0 else {
      return Finding(
        check, .failed, "\(SystemError.last(path))",
        advice: "Create or mount it, and allow the worker's user to enter it.")
    }
    guard status.st_mode & S_IFMT == S_IFDIR else { return Finding(check, .failed, "\(path) is not a directory") }
    var volume = statvfs()
    guard statvfs(path, &volume) == 0 else { return Finding(check, .failed, "\(SystemError.last(path))") }
    guard volume.f_flag & UInt(ST_RDONLY) == 0 else {
      return Finding(check, .failed, "\(path) is read-only", advice: "Mount it for writing.")
    }
    guard access(path, R_OK | W_OK | X_OK) == 0 else {
      return Finding(check, .failed, "\(SystemError.last(path))", advice: "Allow the worker's user to write there.")
    }
    let own = "\(path)/\(StorageURL.reserved)"
    guard access(own, R_OK | W_OK | X_OK) == 0 || errno == ENOENT else {
      return Finding(
        check, .failed, "\(SystemError.last(own))",
        advice: "It belongs to the user who marked the volume: chown -R it to the workers' user.")
    }
    let staged = try? FileDescriptor.open("\(own)/staging", O_RDONLY | O_DIRECTORY).entries()
    guard let mark = try? TextFile.read("\(own)/volume"), UniqueID(String(mark.prefix { !$0.isNewline })) != nil else {
      return Finding(
        check, .failed, "\(path) is not marked as a volume, so workers do not use it",
        advice: staged?.isEmpty ?? true
          ? "Mount the storage's volume. If this is a new one, mark it with 'reelhaul migrate'."
          : """
          It has staging files, so its mark was lost. Write its former id, which the errors of tasks name, into \
          \(own)/volume: with a new mark, the tasks with bytes there wait for the former one.
          """)
    }
    guard staged != nil else {
      return Finding(
        check, .failed, "\(own) has no directory staging, so workers do not use the volume",
        advice: "If the right volume is mounted, 'reelhaul migrate' makes it.")
    }
    do {
      let (free, total) = try FileDescriptor.open(path, O_RDONLY | O_DIRECTORY).space()
      // A wrong setting is a finding of its own.
      let floor = (WorkerConfiguration.minFree(in: arguments.settings) ?? ReservePolicy().floor).bytes(of: total)
      if let total, floor >= total {
        return Finding(
          check, .failed,
          "\(path) has \(ByteCount(total)), and tasks leave \(ByteCount(floor)) free: none can write there",
          advice: "Lower REELHAUL_MIN_FREE.")
      }
      let left = max(0, free - floor)
      return left < Self.lowSpace
        ? Finding(check, .warning, "\(path) has \(ByteCount(left)) for tasks", advice: "Tasks that do not fit wait.")
        : Finding(check, .ok, "\(path), \(ByteCount(free)) free")
    } catch {
      return Finding(check, .failed, "\(error)")
    }
  }

  private func caFile() -> Finding? {
    guard let path = arguments[.caFile] else { return nil }
    do {
      return Finding("ca file", .ok, "\(path), certificates: \(try CertificateFile.check(path))")
    } catch {
      return Finding(
        "ca file", .misconfigured, "\(error)", advice: "Correct REELHAUL_CA_FILE: workers do not start with it.")
    }
  }

  private func credentials() -> Finding? {
    guard let path = arguments[.credentials] else { return nil }
    do {
      let names = try CredentialFile(path: path).credentials().keys.sorted()
      return Finding("credentials", .ok, names.isEmpty ? "none in \(path)" : names.joined(separator: ", "))
    } catch {
      return Finding(
        "credentials", .misconfigured, "\(error)",
        advice: "Correct REELHAUL_CREDENTIALS: workers do not start with it, and tasks that name a credential wait.")
    }
  }

  private func openFiles() -> Finding {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return Finding("open files", .failed, "\(SystemError.last("getrlimit"))")
    }
    // The hard limit counts, because workers raise the soft limit to it.
    return limit.rlim_max < Self.descriptors
      ? Finding(
        "open files", .warning, "\(limit.rlim_max) at most",
        advice: "Allow at least \(Self.descriptors): ulimit -n, LimitNOFILE=.")
      : Finding("open files", .ok, "\(limit.rlim_max) at most")
  }
}
