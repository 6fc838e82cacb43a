#include "common/security/role.h"

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
  caller.role = RoleNamed(parts[4]);
  if (!caller.role) return std::nullopt;
  if (parts.size() == 5) return caller;
  uint32_t rank;
  const bool number = absl::SimpleAtoi(parts[5], &rank) && absl::StrCat(rank) == parts[5];
  if (!number || caller.role != v1::ROLE_WORKER) return std::nullopt;
  caller.rank = rank;
  return caller;
}

}  // namespace

std::string RoleName(v1::Role role) {
  return absl::AsciiStrToLower(v1::Role_Name(role).substr(kPrefix.size()));
}

std::string RoleUri(v1::Role role, std::optional<uint32_t> rank) {
  std::string uri = absl::StrCat(kUriScheme, "//", kProduct, "/", kProduct, "/", RoleName(role));
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
