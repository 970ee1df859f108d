/// A file below a named storage root: `storage://NAME/PATH`, checked and in canonical form.
///
/// The path's escapes (`%20`) are decoded and its names are in Unicode normalisation form C, so two spellings of one
/// name are one file. Nothing in it can lead out of the root; a storage URL has no query and no fragment.
public struct StorageURL: Hashable, Sendable {
  /// The name of the root: 1…63 letters, digits, `-`, `_` and `.`.
  public let root: String
  /// The directories and the file, at least one.
  public let names: [String]

  /// The directory in each root that belongs to Reelhaul; no path may begin with it.
  public static let reserved = ".reelhaul"
  /// Bytes of a name.
  public static let nameLimit = 255
  /// Bytes of a path.
  public static let pathLimit = 2048

  public init(_ text: String) throws(InvalidStorageURL) {
    let scheme = "storage://"
    guard text.hasPrefix(scheme) else { throw InvalidStorageURL("it does not begin with \(scheme)") }
    let parts = text.dropFirst(scheme.count).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else { throw InvalidStorageURL("it names no file: storage://NAME/PATH") }
    let root = String(parts[0])
    guard Self.isRootName(root) else {
      throw InvalidStorageURL("its root's name is not 1 to 63 of letters, digits, '-', '_' and '.'")
    }
    var names: [String] = []
    for part in parts[1].split(separator: "/", omittingEmptySubsequences: false) {
      names.append(try Self.checked(part))
    }
    guard names[0] != Self.reserved else { throw InvalidStorageURL("\(Self.reserved) is reserved") }
    guard names.reduce(names.count, { $0 + $1.utf8.count }) <= Self.pathLimit else {
      throw InvalidStorageURL("its path is longer than \(Self.pathLimit) bytes")
    }
    self.root = root
    self.names = names
  }

  /// The file's path below the root.
  public var path: String { names.joined(separator: "/") }

  public var name: String { names[names.count - 1] }

  public static func isRootName(_ name: String) -> Bool {
    TaskSpec.isName(name, limit: 63) && name.utf8.first != UInt8(ascii: ".")
  }

  private static func checked(_ escaped: Substring) throws(InvalidStorageURL) -> String {
    guard let name = unescaped(escaped) else { throw InvalidStorageURL("an escape in it is not %XX of valid UTF-8") }
    guard !name.isEmpty else { throw InvalidStorageURL("a name in its path is empty") }
    guard name != "." && name != ".." else { throw InvalidStorageURL("\(name) is not a name") }
    guard name.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F && $0 != "/" }) else {
      throw InvalidStorageURL("a name in its path has a control character or an escaped '/'")
    }
    let composed = name.composed
    guard composed.utf8.count <= nameLimit else {
      throw InvalidStorageURL("a name in its path is longer than \(nameLimit) bytes")
    }
    return composed
  }

  static func unescaped(_ text: Substring) -> String? {
    PercentEncoding.decode(text.utf8).flatMap { String(validating: $0, as: UTF8.self) }
  }
}

extension StorageURL: CustomStringConvertible {
  /// Equal for equal URLs; reading it gives the same URL.
  public var description: String {
    var text = "storage://\(root)"
    for name in names {
      text += "/"
      for scalar in name.unicodeScalars {
        switch scalar {
        case "%": text += "%25"
        case "?": text += "%3F"
        case "#": text += "%23"
        default: text.unicodeScalars.append(scalar)
        }
      }
    }
    return text
  }
}

/// Why a text is not a ``StorageURL``.
public struct InvalidStorageURL: Error, Hashable, Sendable, CustomStringConvertible {
  public var reason: String

  init(_ reason: String) {
    self.reason = reason
  }

  public var description: String { "not a storage URL: \(reason)" }
}
