#include "common/object_store/address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/printable.h"

namespace leeway {
namespace {

constexpr size_t kKeyBytesMax = 900;

bool IsUnreserved(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

std::string Escape(absl::string_view text, bool keep_slash) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    if (IsUnreserved(c) || (keep_slash && c == '/')) {
      escaped += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      escaped += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return escaped;
}

// Returns true if the name has 3 to 63 of a-z 0-9 . - (old buckets also have A-Z _), and begins and
// ends with a letter or digit.
bool IsBucketName(absl::string_view name) {
  const auto allowed = [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '_';
  };
  return name.size() >= 3 && name.size() <= 63 && std::all_of(name.begin(), name.end(), allowed) &&
         absl::ascii_isalnum(name.front()) && absl::ascii_isalnum(name.back()) &&
         !absl::StrContains(name, "..");
}

absl::Status Wrong(absl::string_view location, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", Printable(location), "': ", what, "; expected s3://BUCKET/PREFIX"));
}

std::string AmazonHost(const char* service, const std::string& region) {
  const bool china = absl::StartsWith(region, "cn-");
  return absl::StrCat(service, ".", region, ".amazonaws.com", china ? ".cn" : "");
}

}  // namespace

bool IsObjectLocation(absl::string_view location) {
  return absl::StartsWith(location, kObjectScheme);
}

absl::StatusOr<ObjectLocation> ParseObjectLocation(absl::string_view location) {
  absl::string_view rest = location;
  if (!absl::ConsumePrefix(&rest, kObjectScheme))
    return Wrong(location, "the location does not begin with s3://");
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view bucket = rest.substr(0, slash);
  const absl::string_view key = rest.substr(std::min(slash + 1, rest.size()));
  if (!IsBucketName(bucket)) return Wrong(location, "the bucket's name is not valid");
  if (key.size() > kKeyBytesMax)
    return Wrong(location, absl::StrCat("the key has more than ", kKeyBytesMax, " bytes"));
  if (key.empty()) return ObjectLocation{std::string(bucket), ""};
  for (const absl::string_view part : absl::StrSplit(key, '/')) {
    if (part.empty() || part == "." || part == "..") {
      return Wrong(location, "a part of the key is empty, '.' or '..'");
    }
  }
  const bool control = std::any_of(key.begin(), key.end(), absl::ascii_iscntrl);
  if (control) return Wrong(location, "the key has control characters");
  return ObjectLocation{std::string(bucket), std::string(key)};
}

std::string LocationText(const std::string& bucket, absl::string_view key) {
  return absl::StrCat(kObjectScheme, bucket, key.empty() ? "" : "/", key);
}

std::string EscapeQuery(absl::string_view text) { return Escape(text, false); }
std::string EscapeKey(absl::string_view key) { return Escape(key, true); }

absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url) {
  Endpoint endpoint{.path_style = true};
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "http://")) {
    endpoint.scheme = "http";
  } else if (!absl::ConsumePrefix(&rest, "https://")) {
    rest = "";
  }
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.host = std::string(rest.substr(0, slash));
  endpoint.path = std::string(rest.substr(slash));
  // Refuse an '@', because a user name or password before it does not belong in a URL.
  if (!endpoint.host.empty() && url.find_first_of("@?# \t\r\n") == absl::string_view::npos)
    return endpoint;
  return absl::InvalidArgumentError("AWS_ENDPOINT_URL: expected http://HOST:PORT or https://HOST");
}

Endpoint AmazonEndpoint(const std::string& region, const std::string& bucket) {
  return {.host = AmazonHost("s3", region),
          .path_style = absl::StrContains(bucket, '.') || absl::StrContains(bucket, '_')};
}

Endpoint AmazonStsEndpoint(const std::string& region) {
  return {.host = AmazonHost("sts", region)};
}

std::string UrlOf(const Endpoint& endpoint, const std::string& bucket, absl::string_view key,
                  Query query) {
  std::string url = absl::StrCat(endpoint.scheme, "://", endpoint.path_style ? "" : bucket + ".",
                                 endpoint.host, endpoint.path);
  if (endpoint.path_style) absl::StrAppend(&url, "/", EscapeKey(bucket));
  // If the bucket is in the host's name, the URL needs a path, even if the key is empty.
  if (!key.empty() || !endpoint.path_style) absl::StrAppend(&url, "/", EscapeKey(key));
  for (auto& [name, value] : query) {
    name = EscapeQuery(name);
    value = EscapeQuery(value);
  }
  std::sort(query.begin(), query.end());
  char before = '?';
  for (const auto& [name, value] : query) {
    url += before;
    absl::StrAppend(&url, name, "=", value);
    before = '&';
  }
  return url;
}

}  // namespace leeway
