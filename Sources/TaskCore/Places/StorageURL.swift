/// A file below a named storage root: `storage://NAME/PATH`, checked and in canonical form.
///
/// The path's escapes (`%20`) are decoded and its names are in Unicode normalisation form C, so two spellings of one
/// name are one file. Nothing in it can lead out of the root; a storage URL has no query and no fragment.
public struct StorageURL: Hashable, Sendable {
  /// The name of the root: 1…63 letters, digits, `-`, `_` and `.`.
  public let root: String
  /// The directories and the file, at least one.
  public let names: [String]

  /// The directory in each root that belongs to Reelhaul. No path may begin with it, in upper or lower case, because
  /// some file systems do not distinguish them.
  public static let reserved = ".reelhaul"
  /// The most bytes in a name.
  public static let nameLimit = 255
  /// The most bytes in a path.
  public static let pathLimit = 2048

  public init(_ text: String) throws(InvalidStorageURL) {
    try self.init(text, composes: true)
  }

  /// The file whose names are exactly as in `text`, in whatever normalisation form. Others may make such files.
  package init(spelled text: String) throws(InvalidStorageURL) {
    try self.init(text, composes: false)
  }

  private init(_ text: String, composes: Bool) throws(InvalidStorageURL) {
    var text = text
    let url: Result<StorageURL, InvalidStorageURL> = text.withUTF8 { bytes in
      Result { () throws(InvalidStorageURL) in try StorageURL(utf8: bytes[...], composes: composes) }
    }
    self = try url.get()
  }

  /// A file in a scratch directory, with exactly this name. No text can be parsed into such a URL, because ``reserved`` is
  /// refused.
  package init(root: String, scratch directory: String, file: String) throws(InvalidStorageURL) {
    guard !file.contains("/") else { throw InvalidStorageURL("it has a '/'") }
    self.root = root
    names = [Self.reserved, "scratch", directory, try Self.checked(file)]
  }

  private init(utf8 text: Slice<UnsafeBufferPointer<UInt8>>, composes: Bool) throws(InvalidStorageURL) {
    let place = try Self.split(text)
    root = place.root
    names = try place.path
      .split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { name throws(InvalidStorageURL) in
        guard let name = Self.unescaped(name) else {
          throw InvalidStorageURL("an escape in it is not %XX of valid UTF-8")
        }
        return try Self.checked(composes ? name.composed : name)
      }
    guard !names.contains(where: Self.isReserved) else { throw InvalidStorageURL("\(Self.reserved) is reserved") }
    guard names.reduce(names.count, { $0 + $1.utf8.count }) <= Self.pathLimit else {
      throw InvalidStorageURL("its path is longer than \(Self.pathLimit) bytes")
    }
  }

  /// The file's path below the root.
  public var path: String { names.joined(separator: "/") }

  public var name: String { names[names.count - 1] }

  private static let scheme = "storage://"

  package static func hasScheme(_ text: some Sequence<UInt8>) -> Bool { ResourceURL.begins(text, with: scheme) }

  /// The root in `storage://NAME/…`, whatever follows: a task of your own kind may name a directory. Nil for any other
  /// text.
  package static func root(of text: String) -> String? {
    hasScheme(text.utf8) ? try? split(text.utf8).root : nil
  }

  /// The root, and what is behind the slash after it.
  private static func split<Text: Collection<UInt8>>(
    _ text: Text
  ) throws(InvalidStorageURL) -> (root: String, path: Text.SubSequence) {
    guard hasScheme(text) else { throw InvalidStorageURL("it does not begin with \(scheme)") }
    let place = text.dropFirst(scheme.utf8.count)
    guard let slash = place.firstIndex(of: UInt8(ascii: "/")) else {
      throw InvalidStorageURL("it has no path: write storage://NAME/PATH")
    }
    let root = String(decoding: place[..<slash], as: UTF8.self)
    guard isRootName(root) else {
      throw InvalidStorageURL("its root's name is not 1 to 63 of letters, digits, '-', '_' and '.'")
    }
    return (root, place[slash...].dropFirst())
  }

  public static func isRootName(_ name: String) -> Bool {
    TaskSpec.isName(name, limit: 63) && name.utf8.first != UInt8(ascii: ".")
  }

  /// In every directory, because a root may lie below another one; and in every spelling that a file system may take for
  /// the same name.
  private static func isReserved(_ name: String) -> Bool {
    let visible = name.unicodeScalars.filter { !$0.properties.isDefaultIgnorableCodePoint }
    let end = visible.lastIndex { $0 != "." && $0 != " " }
    return end.map { String(String.UnicodeScalarView(visible[...$0])).lowercased() == reserved } ?? false
  }

  private static func checked(_ name: String) throws(InvalidStorageURL) -> String {
    guard !name.isEmpty else { throw InvalidStorageURL("a name in its path is empty") }
    guard name != "." && name != ".." else { throw InvalidStorageURL("\(name) is not a name") }
    guard name.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control && $0 != "/" }) else {
      throw InvalidStorageURL("a name in its path has a control character or an escaped '/'")
    }
    guard name.utf8.count <= nameLimit else {
      throw InvalidStorageURL("a name in its path is longer than \(nameLimit) bytes")
    }
    return name
  }

  /// Returns `nil` if an escape is not `%XX`, or if the decoded bytes are not UTF-8.
  static func unescaped(_ text: some Collection<UInt8>) -> String? {
    guard text.contains(UInt8(ascii: "%")) else { return String(decoding: text, as: UTF8.self) }
    return PercentEncoding.decode(text).flatMap { String(validating: $0, as: UTF8.self) }
  }
}

extension StorageURL: CustomStringConvertible {
  /// The canonical text: equal for equal URLs, and parsing it gives the same URL.
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
