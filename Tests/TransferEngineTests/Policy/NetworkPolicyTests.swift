import Glibc
import ReelhaulSystem
import Testing
import TransferEngine

@Suite struct NetworkPolicyTests {
  func address(_ text: String) throws -> IPAddress {
    try #require(IPAddress(text), "\(text)")
  }

  @Test(
    "private and special addresses are refused",
    arguments: [
      "0.0.0.0", "10.1.2.3", "100.64.0.1", "100.100.100.200", "100.127.255.255", "127.0.0.1", "127.255.255.254",
      "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.168.255.255",
      "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1", "239.255.255.255", "240.0.0.1",
      "255.255.255.255",
      "::", "::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::127.0.0.1", "::8.8.8.8",
      "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:53aa:64c::1", "2001:db8::1",
      "2002:7f00:1::1", "2002:a9fe:a9fe::", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1",
      "ff02::1", "4000::1",
    ])
  func refuses(text: String) throws {
    #expect(try !NetworkPolicy().permits(address(text)))
  }

  @Test(
    "public addresses are permitted",
    arguments: [
      "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
      "168.63.129.15", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0", "198.20.0.0", "223.255.255.255",
      "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1", "2001:200::1", "2606:4700:4700::1111", "3ffe::1",
    ])
  func permits(text: String) throws {
    #expect(try NetworkPolicy().permits(address(text)))
  }

  @Test("only the named networks are allowed in addition")
  func allowsNamedNetworksOnly() throws {
    let policy = try NetworkPolicy(allowed: ["127.0.0.0/8", "fd12::/16", "10.1.2.3"].map { try CIDR($0) })
    for text in ["127.0.0.1", "::ffff:127.9.9.9", "fd12:1::1", "10.1.2.3", "64:ff9b::7f00:1", "2002:7f00:1::"] {
      #expect(try policy.permits(address(text)), "\(text)")
    }
    for text in ["10.1.2.4", "fd13::1", "::1", "169.254.169.254", "::127.0.0.1"] {
      #expect(try !policy.permits(address(text)), "\(text)")
    }
    #expect(try NetworkPolicy.loopback.permits(address("::1")))
    let four = NetworkPolicy(allowed: [try CIDR("0.0.0.0/0")])
    #expect(try four.permits(address("169.254.169.254")))
    #expect(try !four.permits(address("fd00:ec2::254")))
  }

  @Test(
    "invalid networks are refused with the reason",
    arguments: [
      ("10.0.0.0/33", "0 to 32"), ("::/129", "0 to 128"), ("10.0.0.0/", "0 to 32"), ("10.0.0.0/-1", "0 to 32"),
      ("10.0.0.1/8", "beyond"), ("fd00::1/8", "beyond"), ("localhost", "not an IP"), ("127.1", "not an IP"),
      ("0x7f.0.0.1", "not an IP"), ("[::1]", "not an IP"),
    ])
  func refusesInvalidNetworks(text: String, reason: String) {
    let error = #expect(throws: InvalidNetwork.self) { try CIDR(text) }
    #expect(error?.description.contains(reason) == true)
  }

  @Test("socket addresses are read and judged")
  func readsSocketAddresses() throws {
    var four = sockaddr_in()
    four.sin_family = sa_family_t(AF_INET)
    four.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var six = sockaddr_in6()
    six.sin6_family = sa_family_t(AF_INET6)
    inet_pton(AF_INET6, "2606:4700::1", &six.sin6_addr)
    var unix = sockaddr_un()
    unix.sun_family = sa_family_t(AF_UNIX)
    #expect(withUnsafeBytes(of: four) { IPAddress(sockaddr: $0) }?.description == "127.0.0.1")
    #expect(withUnsafeBytes(of: six) { IPAddress(sockaddr: $0) }?.description == "2606:4700::1")
    #expect(withUnsafeBytes(of: six) { NetworkPolicy().permits(sockaddr: $0) })
    #expect(withUnsafeBytes(of: unix) { !NetworkPolicy().permits(sockaddr: $0) })
    #expect(withUnsafeBytes(of: six) { IPAddress(sockaddr: UnsafeRawBufferPointer(rebasing: $0[..<20])) } == nil)
  }
}
