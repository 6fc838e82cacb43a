#include "launcher/kubernetes/names.h"

#include <re2/re2.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

bool Fits(absl::string_view text, const RE2& pattern) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

absl::Status Unfit(absl::string_view what, absl::string_view text, absl::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat(what, " ", text, ": ", wanted));
}

absl::Status CheckLength(absl::string_view what, absl::string_view text, size_t longest) {
  if (text.size() <= longest) return absl::OkStatus();
  return Unfit(what, text,
               absl::StrCat("has ", text.size(), " characters, but may have at most ", longest,
                            ": use a shorter name"));
}

}  // namespace

absl::Status CheckHostLabel(absl::string_view what, absl::string_view name, size_t longest) {
  static const RE2 pattern("[a-z]([-a-z0-9]*[a-z0-9])?");
  if (!Fits(name, pattern)) {
    return Unfit(
        what, name,
        "must have only lowercase letters, digits and hyphens, begin with a letter and not "
        "end with a hyphen (RFC 1035)");
  }
  return CheckLength(what, name, longest);
}

absl::Status CheckObjectName(absl::string_view what, absl::string_view name, size_t longest) {
  static const RE2 pattern("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
  if (!Fits(name, pattern)) {
    return Unfit(
        what, name,
        "must have only lowercase letters, digits, hyphens and dots, and letters or digits "
        "beside each dot and at both ends (RFC 1123)");
  }
  return CheckLength(what, name, longest);
}

absl::Status CheckFileName(absl::string_view what, absl::string_view name) {
  static const RE2 pattern("[-._a-zA-Z0-9]+");
  if (!Fits(name, pattern) || name == "." || absl::StartsWith(name, "..")) {
    return Unfit(what, name,
                 "must have only letters, digits, '-', '_' and '.', and may neither be \".\" nor "
                 "begin with \"..\"");
  }
  return CheckLength(what, name, kObjectNameLength);
}

absl::Status CheckImage(absl::string_view what, absl::string_view image) {
  static const RE2 pattern(
      "([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*"
      "(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,128})?");
  if (Fits(image, pattern)) return absl::OkStatus();
  return Unfit(what, image, "is not an image: write it as REGISTRY/NAME:TAG or NAME@sha256:DIGEST");
}

absl::Status CheckBytes(absl::string_view what, absl::string_view quantity) {
  static const RE2 pattern("[1-9][0-9]{0,17}([KMGTP]i|[kMGTP])?");
  if (Fits(quantity, pattern)) return absl::OkStatus();
  return Unfit(what, quantity, "is not a number of bytes such as 512Mi or 10Gi");
}

}  // namespace leeway
