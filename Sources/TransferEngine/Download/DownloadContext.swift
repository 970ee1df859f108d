/// What the downloads to one storage root share.
struct DownloadContext: Sendable {
  let root: StorageRoot
  let options: DownloadOptions
}
