#include "common/object_store/settings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/profile.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kPartBytes = 8 << 20;
// S3 allows at most 10,000 parts.
constexpr uint64_t kPartBytesMin = 64 << 10;
constexpr uint64_t kPartBytesMax = uint64_t{1} << 30;

absl::StatusOr<std::string> FindRegion(const EnvironmentLookup& look_up) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto region = look_up(name)) return *region;
  }
  const std::string profile = ProfileName(look_up);
  ASSIGN_OR_RETURN(auto found, ReadProfile(ProfilePath(look_up, "AWS_CONFIG_FILE", "config"),
                                           profile == "default" ? profile : "profile " + profile));
  return found["region"].empty() ? "us-east-1" : found["region"];
}

absl::StatusOr<uint64_t> NumberIn(const EnvironmentLookup& look_up, const char* name,
                                  uint64_t otherwise, uint64_t min, uint64_t max) {
  const auto text = look_up(name);
  if (!text) return otherwise;
  uint64_t number = 0;
  if (absl::SimpleAtoi(*text, &number) && number >= min && number <= max) return number;
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": '", *text, "' is not a number from ", min, " to ", max));
}

// Returns whether the text may be a region. The region becomes a part of a host's name and of the
// signature.
bool IsRegion(const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '-') return false;
  }
  return !text.empty();
}

}  // namespace

absl::StatusOr<StoreSettings> FindStoreSettings(const EnvironmentLookup& look_up) {
  StoreSettings settings;
  ASSIGN_OR_RETURN(settings.region, FindRegion(look_up));
  if (!IsRegion(settings.region)) {
    return absl::InvalidArgumentError("AWS_REGION: expected a name such as eu-central-1");
  }
  ASSIGN_OR_RETURN(settings.credentials, FindCredentialPlace(look_up, settings.region));
  settings.endpoint =
      look_up("AWS_ENDPOINT_URL_S3").value_or(look_up("AWS_ENDPOINT_URL").value_or(""));
  settings.ca_file = look_up("AWS_CA_BUNDLE").value_or("");
  ASSIGN_OR_RETURN(settings.part_bytes, NumberIn(look_up, "LEEWAY_S3_PART_BYTES", kPartBytes,
                                                 kPartBytesMin, kPartBytesMax));
  ASSIGN_OR_RETURN(const uint64_t total, NumberIn(look_up, "LEEWAY_S3_RETRY_SECONDS", 60, 1, 3600));
  ASSIGN_OR_RETURN(const uint64_t stall, NumberIn(look_up, "LEEWAY_S3_STALL_SECONDS", 15, 1, 600));
  settings.retry_total = std::chrono::seconds(total);
  settings.stall = std::chrono::seconds(stall);
  return settings;
}

}  // namespace leeway
