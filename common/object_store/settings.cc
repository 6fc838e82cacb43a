#include "common/object_store/settings.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kProfileBytesMax = 1 << 20;
constexpr uint64_t kPartBytes = 8 << 20;
// A part's number is at most 10,000.
constexpr uint64_t kPartBytesMin = 64 << 10;
constexpr uint64_t kPartBytesMax = uint64_t{1} << 30;

using Section = std::map<std::string, std::string>;

// A section of an INI file; empty if there is none. Names of keys are in lower case.
Section SectionOf(const std::string& text, absl::string_view name) {
  Section section;
  bool inside = false;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (absl::ConsumePrefix(&line, "[")) {
      absl::ConsumeSuffix(&line, "]");
      inside = absl::StripAsciiWhitespace(line) == name;
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || line.empty() || line[0] == '#' || line[0] == ';' || equals == line.npos)
      continue;
    section[absl::AsciiStrToLower(absl::StripAsciiWhitespace(line.substr(0, equals)))] =
        std::string(absl::StripAsciiWhitespace(line.substr(equals + 1)));
  }
  return section;
}

std::string PathOf(const EnvironmentLookup& look_up, const char* variable, const char* name) {
  if (auto path = look_up(variable)) return *path;
  return absl::StrCat(look_up("HOME").value_or(""), "/.aws/", name);
}

// Nothing where there is no such file.
absl::StatusOr<Section> ProfileIn(const std::string& path, absl::string_view section) {
  const absl::StatusOr<std::string> text = ReadFile(path, kProfileBytesMax);
  if (absl::IsNotFound(text.status())) return Section();
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return SectionOf(*text, section);
}

absl::StatusOr<Credentials> FindCredentials(const EnvironmentLookup& look_up,
                                            const std::string& profile) {
  const auto id = look_up("AWS_ACCESS_KEY_ID"), secret = look_up("AWS_SECRET_ACCESS_KEY");
  if (id && secret) return Credentials{*id, *secret, look_up("AWS_SESSION_TOKEN").value_or("")};
  const std::string path = PathOf(look_up, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  ASSIGN_OR_RETURN(Section found, ProfileIn(path, profile));
  Credentials credentials{found["aws_access_key_id"], found["aws_secret_access_key"],
                          found["aws_session_token"]};
  if (!credentials.access_key_id.empty() && !credentials.secret_access_key.empty())
    return credentials;
  return absl::InvalidArgumentError(absl::StrCat(
      "no credentials for the object store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
      "put them into the profile [",
      profile, "] (AWS_PROFILE) of ", path));
}

absl::StatusOr<std::string> FindRegion(const EnvironmentLookup& look_up,
                                       const std::string& profile) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (auto region = look_up(name)) return *region;
  }
  const std::string section = profile == "default" ? profile : "profile " + profile;
  ASSIGN_OR_RETURN(Section found, ProfileIn(PathOf(look_up, "AWS_CONFIG_FILE", "config"), section));
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

// The region becomes a part of a host's name and of the signature.
bool IsRegion(const std::string& text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && c != '-') return false;
  }
  return !text.empty();
}

}  // namespace

absl::StatusOr<StoreSettings> FindStoreSettings(const EnvironmentLookup& look_up) {
  const std::string profile = look_up("AWS_PROFILE").value_or("default");
  StoreSettings settings;
  ASSIGN_OR_RETURN(settings.credentials, FindCredentials(look_up, profile));
  ASSIGN_OR_RETURN(settings.region, FindRegion(look_up, profile));
  if (!IsRegion(settings.region)) {
    return absl::InvalidArgumentError("AWS_REGION: a name such as eu-central-1 is wanted");
  }
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
