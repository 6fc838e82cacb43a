#include "common/object_store/profile.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/files/files.h"

namespace leeway {
namespace {

constexpr uint64_t kProfileBytesMax = 1 << 20;

using Section = std::map<std::string, std::string>;

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

}  // namespace

std::string ProfileName(const EnvironmentLookup& look_up) {
  return look_up("AWS_PROFILE").value_or("default");
}

std::string ProfilePath(const EnvironmentLookup& look_up, const char* variable, const char* name) {
  if (auto path = look_up(variable)) return *path;
  return absl::StrCat(look_up("HOME").value_or(""), "/.aws/", name);
}

absl::StatusOr<Section> ReadProfile(const std::string& path, absl::string_view section) {
  const absl::StatusOr<std::string> text = ReadFile(path, kProfileBytesMax);
  if (absl::IsNotFound(text.status())) return Section();
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return SectionOf(*text, section);
}

}  // namespace leeway
