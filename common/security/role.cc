#include "common/security/role.h"

#include <algorithm>

#include <google/protobuf/descriptor.h>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr absl::string_view kPrefix = "ROLE_";
constexpr absl::string_view kUriScheme = "spiffe:";
constexpr absl::string_view kProduct = "leeway";
constexpr size_t kDomainBytesMax = 255;

std::optional<v1::Role> RoleNamed(absl::string_view name) {
  v1::Role role;
  const std::string upper = absl::StrCat(kPrefix, absl::AsciiStrToUpper(name));
  if (name != absl::AsciiStrToLower(name) || !v1::Role_Parse(upper, &role)) return std::nullopt;
  return role == v1::ROLE_UNSPECIFIED ? std::nullopt : std::optional(role);
}

std::optional<Caller> CallerOf(absl::string_view uri) {
  // spiffe: / "" / DOMAIN / leeway / ROLE [/ RANK]
  const std::vector<absl::string_view> parts = absl::StrSplit(uri, '/');
  if (parts.size() < 5 || parts.size() > 6 || parts[0] != kUriScheme || !parts[1].empty() ||
      parts[2].empty() || parts[3] != kProduct) {
    return std::nullopt;
  }
  Caller caller;
  caller.trust_domain = std::string(parts[2]);
  caller.role = RoleNamed(parts[4]);
  if (!caller.role) return std::nullopt;
  if (parts.size() == 5) return caller;
  uint32_t rank;
  const bool number = absl::SimpleAtoi(parts[5], &rank) && absl::StrCat(rank) == parts[5];
  const bool has_rank = caller.role == v1::ROLE_WORKER || caller.role == v1::ROLE_PEER;
  if (!number || !has_rank) return std::nullopt;
  caller.rank = rank;
  return caller;
}

}  // namespace

std::string RoleName(v1::Role role) {
  return absl::AsciiStrToLower(v1::Role_Name(role).substr(kPrefix.size()));
}

std::string RoleUri(v1::Role role, std::optional<uint32_t> rank, absl::string_view trust_domain) {
  std::string uri =
      absl::StrCat(kUriScheme, "//", trust_domain, "/", kProduct, "/", RoleName(role));
  if (rank) absl::StrAppend(&uri, "/", *rank);
  return uri;
}

std::optional<Caller> CallerOf(const std::vector<std::string>& uris) {
  std::optional<Caller> found;
  for (const std::string& uri : uris) {
    const std::optional<Caller> caller = CallerOf(absl::string_view(uri));
    if (caller && found) return std::nullopt;
    if (caller) found = caller;
  }
  return found;
}

absl::Status CheckTrustDomain(absl::string_view what, absl::string_view trust_domain) {
  const auto may = [](unsigned char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '.' || c == '-' || c == '_';
  };
  if (!trust_domain.empty() && trust_domain.size() <= kDomainBytesMax &&
      std::all_of(trust_domain.begin(), trust_domain.end(), may)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(what, " '", trust_domain, "': a trust domain has at most ", kDomainBytesMax,
                   " lower-case letters, digits, dots, hyphens and underscores"));
}

std::string Described(const Caller& holder) {
  if (!holder.role) return "a certificate without a role";
  return absl::StrCat("a ", RoleName(*holder.role), "'s certificate for the trust domain '",
                      holder.trust_domain, "'");
}

std::vector<v1::Role> CallersOf(const std::string& method) {
  const google::protobuf::MethodDescriptor* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method);
  std::vector<v1::Role> callers;
  if (descriptor == nullptr) return callers;
  for (int i = 0; i < descriptor->options().ExtensionSize(v1::callers); ++i) {
    callers.push_back(descriptor->options().GetExtension(v1::callers, i));
  }
  return callers;
}

}  // namespace leeway
