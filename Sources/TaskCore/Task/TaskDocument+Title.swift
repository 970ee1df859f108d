extension TaskDocument {
  /// A short name for people: the label `title`, or else the last name of the destination, or else the last name of the
  /// source, or else the id. The URL of a tus server names no file.
  package var title: String {
    if let title = spec.labels["title"], !title.isEmpty { return title }
    for url in [spec.destination, spec.source].compactMap({ $0 }) where !TusURL.hasScheme(url.utf8) {
      let path = url.prefix { $0 != "?" && $0 != "#" }
      if let name = path.split(separator: "/").last, !path.hasSuffix("/") { return String(name) }
    }
    return "\(spec.id)"
  }
}
