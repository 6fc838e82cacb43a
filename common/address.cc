#include "common/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace leeway {
namespace {

Reach ReachOfSix(const in6_addr& address) {
  if (IN6_IS_ADDR_UNSPECIFIED(&address)) return Reach::kNobody;
  if (IN6_IS_ADDR_LOOPBACK(&address)) return Reach::kOwnHost;
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return Reach::kAnybody;
  if (address.s6_addr[12] == 0) return Reach::kNobody;
  return address.s6_addr[12] == 127 ? Reach::kOwnHost : Reach::kAnybody;
}

}  // namespace

absl::StatusOr<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  bool good = colon != std::string::npos && colon > 0 &&
              absl::SimpleAtoi(address.substr(colon + 1), &port) && port <= 65535;
  HostPort parts;
  if (good) {
    parts = {address.substr(0, colon), address.substr(colon + 1)};
    const bool bracketed =
        parts.host.size() > 2 && parts.host[0] == '[' && parts.host.back() == ']';
    if (bracketed) parts.host = parts.host.substr(1, parts.host.size() - 2);
    // gRPC would interpret any other host as the name of a resolver or as a path.
    good = parts.host.find(':') == std::string::npos ? !bracketed : bracketed;
    good = good && parts.host.find('/') == std::string::npos;
  }
  if (good) return parts;
  return absl::InvalidArgumentError(absl::StrCat(
      address, ": not an address; expected HOST:PORT, with a port of 0 (any) to 65535"));
}

absl::Status CheckAddressToReach(const std::string& address) {
  const absl::StatusOr<HostPort> parts = SplitAddress(address);
  uint32_t port = 0;
  if (parts.ok() && absl::SimpleAtoi(parts->port, &port) && port > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      address, ": not an address to connect to; expected HOST:PORT, with a port of 1 to 65535"));
}

std::optional<Reach> ReachOfNumber(const std::string& host) {
  const std::string number = host.substr(0, host.find('%'));
  in6_addr six;
  if (inet_pton(AF_INET6, number.c_str(), &six) == 1) return ReachOfSix(six);
  in_addr four;
  // Like the resolver, inet_aton() also accepts short forms such as 127.1 and 0.
  if (inet_aton(number.c_str(), &four) != 1) return std::nullopt;
  const uint32_t first = ntohl(four.s_addr) >> 24;
  if (first == 0) return Reach::kNobody;
  return first == 127 ? Reach::kOwnHost : Reach::kAnybody;
}

Reach ReachOf(const HostPort& address) {
  if (const auto number = ReachOfNumber(address.host)) return *number;
  const std::string name = absl::AsciiStrToLower(absl::StripSuffix(address.host, "."));
  for (const char* local : {"localhost", "localhost.localdomain", "localhost4", "localhost6",
                            "ip6-localhost", "ip6-loopback"}) {
    if (name == local) return Reach::kOwnHost;
  }
  return absl::EndsWith(name, ".localhost") ? Reach::kOwnHost : Reach::kAnybody;
}

}  // namespace leeway
