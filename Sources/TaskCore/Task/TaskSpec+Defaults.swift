extension TaskSpec {
  /// Sets the destination of a download that has none: `storage://default/` and the last name of the source, or the
  /// task's id if the source has no name.
  public mutating func fillInDestination() {
    guard kind == .download, destination == nil else { return }
    let name = StorageURL.fileName(ofSource: source)
    let escaped = PercentEncoding.encode((name == "download" ? id.description : name).utf8) { "%?#".utf8.contains($0) }
    destination = "storage://default/\(escaped)"
  }
}
