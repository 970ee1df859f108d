/// Why a file of secrets or certificates cannot be used, for people. Of the content it shows only names.
package struct UnusableFile: Error, CustomStringConvertible {
  package let description: String
}
