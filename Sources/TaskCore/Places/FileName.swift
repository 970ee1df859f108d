// For `_nfc`, the standard library's normalisation, which has no public name yet. utf8proc or libunistring would be one
// more C library, in a module that imports none, and its Unicode tables may have another version than those of String's
// comparison. Foundation would bring all of ICU. If a toolchain removes the name, this does not compile: nothing can
// fail later, at run time.
@_spi(_Unicode) import Swift

extension String {
  /// In Unicode normalisation form C.
  var composed: String {
    guard utf8.contains(where: { $0 >= 0x80 }) else { return self }
    var view = String.UnicodeScalarView()
    view.append(contentsOf: _nfc)
    return String(view)
  }
}

extension StorageURL {
  /// A file name made from the URL `source`: its last path segment, made safe; `download` if it has none.
  ///
  /// Unsafe characters become `_`. A name that is too long is cut before its extension.
  public static func fileName(ofSource source: String) -> String {
    let hierarchy = source.prefix { $0 != "?" && $0 != "#" }
    let start = hierarchy.range(ofSchemeSeparator: "://") ?? hierarchy.startIndex
    let path = hierarchy[start...].drop { $0 != "/" }
    let segment = path.split(separator: "/").last ?? ""
    var name = String.UnicodeScalarView()
    for scalar in (unescaped(segment.utf8) ?? String(segment)).composed.unicodeScalars {
      name.append(scalar.properties.generalCategory == .control || scalar == "/" ? "_" : scalar)
    }
    let safe = String(name)
    return safe.isEmpty || safe == "." || safe == ".." || safe.lowercased() == reserved ? "download" : shortened(safe)
  }

  private static func shortened(_ name: String) -> String {
    guard name.utf8.count > nameLimit else { return name }
    let dot = name.lastIndex(of: ".") ?? name.endIndex
    let ending = name[dot...].utf8.count <= 16 ? String(name[dot...]) : ""
    var stem = name.dropLast(ending.count)
    while stem.utf8.count + ending.utf8.count > nameLimit { stem.removeLast() }
    let short = String(stem) + ending
    return short.isEmpty ? "download" : short
  }
}

extension Substring {
  /// The index behind the first `separator`.
  fileprivate func range(ofSchemeSeparator separator: String) -> Index? {
    indices.first { self[$0...].hasPrefix(separator) }.map { index($0, offsetBy: separator.count) }
  }
}
