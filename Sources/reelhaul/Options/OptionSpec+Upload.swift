import CommandLineKit
import ReelhaulMessages
import TaskCore
import WorkerOptions

extension OptionSpec {
  /// The options of `upload` and `copy`.
  static func sending(_ kind: TaskKind) -> [OptionSpec] {
    let fields = submitting.compactMap { option -> OptionSpec? in
      var option = option
      switch option.name {
      case "allow-unframed": return nil
      case "to" where kind == .copy: return nil
      case "to": option.help = "Where it goes: s3://BUCKET/KEY, https://…, http://…, tus+https://… or tus+http://…"
      default: break
      }
      return option
    }
    let own = ofUpload.map(\.option).filter { kind == .copy || $0.name != "to-credential" }
    return fields + own + [.wait, .json] + producing
  }

  /// The options that make the parameters of an upload, with the names of their fields.
  static let ofUpload: [(field: String, option: OptionSpec)] = [
    ("method", method), ("partSize", partSize), ("contentType", contentType), ("metadata", metadata),
    ("storageClass", storageClass), ("checksum", checksum), ("creationWithUpload", creationWithUpload),
    ("toCredential", toCredential),
  ]

  private static let group = "Upload"
  fileprivate static let method = OptionSpec(
    "method", .choice(UploadParameters.Method.allCases.map(\.rawValue)), default: "PUT", group: group,
    help: "The request that carries the file; for http(s)://")
  fileprivate static let partSize = OptionSpec(
    "part-size", .bytes, group: group,
    help: "The size of all parts but the last; for s3:// (5MiB to 1GiB) and tus; by default it follows from the length")
  fileprivate static let contentType = OptionSpec(
    "content-type", .text, valueName: "TYPE", group: group, help: "What the file is, such as video/mp4")
  fileprivate static let metadata = OptionSpec(
    "metadata", .text, valueName: "NAME=VALUE", repeatable: true, group: group,
    help: "What the server keeps beside the file; for s3:// and tus")
  fileprivate static let storageClass = OptionSpec(
    "storage-class", .text, valueName: "CLASS", group: group, help: "The store's class of storage; for s3://")
  fileprivate static let checksum = OptionSpec(
    "checksum", .choice(UploadParameters.Checksum.allCases.map(\.rawValue)), group: group,
    help: "What the server compares the bytes with; by default what it can")
  fileprivate static let creationWithUpload = OptionSpec(
    "creation-with-upload", .flag, group: group,
    help:
      "Send a small file with the creation of its upload; for tus. If the answer is lost, the file may be there twice")
  fileprivate static let toCredential = OptionSpec(
    "to-credential", .text, valueName: "NAME", group: group,
    help: "The credential for the destination, where --credential is for the source alone")
}

extension UploadParameters {
  /// What the command line gives; the caller checks it.
  init(_ arguments: Arguments) throws(UsageError) {
    self.init()
    method = arguments.given(.method).flatMap { Method(rawValue: $0) }
    partSize = arguments.bytes(.partSize)
    contentType = arguments[.contentType]
    metadata = try arguments.pairs(.metadata)
    storageClass = arguments[.storageClass]
    checksum = arguments[.checksum].flatMap { Checksum(rawValue: $0) }
    creationWithUpload = arguments[flag: .creationWithUpload]
    toCredential = arguments.given(.toCredential)
  }
}
