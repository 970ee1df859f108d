extension TaskSpec {
  /// Where a download goes whose producer named no destination: `storage://default/` and the last name of the source,
  /// or the task's id where the source has none of its own.
  public mutating func fillInDestination() {
    guard kind == .download, destination == nil else { return }
    let name = StorageURL.fileName(ofSource: source)
    let escaped = PercentEncoding.encode(name == "download" ? id.description : name) { "%?#".utf8.contains($0) }
    destination = "storage://default/\(escaped)"
  }

  /// The host that limits count for: the remote side of the task; empty where there is none.
  public var host: String {
    for case .web(let url)? in [Self.url(source), Self.url(destination)] { return url.host }
    return ""
  }

  /// The storage root that a worker must have for the task; empty where it needs none.
  public var site: String {
    for case .storage(let url)? in [Self.url(destination), Self.url(source)] { return url.root }
    return ""
  }

  private static func url(_ text: String?) -> ResourceURL? {
    text.flatMap { text in try? ResourceURL(text) }
  }
}
