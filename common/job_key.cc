#include "common/job_key.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr char kKeyPayload[] = "leeway/job-key";

}  // namespace

absl::Status AtKey(const absl::Status& status, absl::string_view key) {
  if (status.ok()) return status;
  const std::string inner = KeyOf(status);
  absl::Status keyed(status.code(),
                     absl::StrCat(key, inner.empty() ? ": " : ".", status.message()));
  keyed.SetPayload(kKeyPayload, absl::Cord(absl::StrCat(key, inner.empty() ? "" : ".", inner)));
  return keyed;
}

std::string KeyOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kKeyPayload);
  return payload.has_value() ? std::string(*payload) : "";
}

std::string MessageWithoutKey(const absl::Status& status) {
  const std::string key = KeyOf(status);
  return std::string(status.message().substr(key.empty() ? 0 : key.size() + 2));
}

}  // namespace leeway
