/// Why a file of secrets or certificates cannot be used. For people; of its contents it shows nothing but names.
package struct UnusableFile: Error, CustomStringConvertible {
  package let description: String
}
