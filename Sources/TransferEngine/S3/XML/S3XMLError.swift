/// Why a document of a store cannot be read. Of the document it shows at most names.
package struct S3XMLError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String

  init(_ description: String) {
    self.description = description
  }
}
