extension TaskDocument {
  /// A short name for people: the label `title`, else the last name of the destination, else that of the source, else
  /// the id.
  package var title: String {
    if let title = spec.labels["title"], !title.isEmpty { return title }
    for url in [spec.destination, spec.source] {
      let path = (url ?? "").prefix { $0 != "?" && $0 != "#" }
      if let name = path.split(separator: "/").last, !path.hasSuffix("/") { return String(name) }
    }
    return "\(spec.id)"
  }
}
