// How objects are named: s3://BUCKET/KEY, and the URL of each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr char kObjectScheme[] = "s3://";

// Whether it begins with s3://.
bool IsObjectLocation(absl::string_view location);

struct ObjectLocation {
  std::string bucket;
  // Without a slash at its beginning and its end; empty: the bucket itself.
  std::string key;
};
// INVALID_ARGUMENT, saying what is wrong: no bucket, a name that no bucket may have, a key with an
// empty part, with "." or "..", with control characters, or above 900 bytes (of S3's 1024; the
// rest is for the names of files).
absl::StatusOr<ObjectLocation> ParseObjectLocation(absl::string_view location);
// s3://BUCKET/KEY
std::string LocationText(const std::string& bucket, absl::string_view key);

// As signatures of S3 want it: everything but A-Z a-z 0-9 - . _ ~ becomes %XX, in capitals.
std::string EscapeQuery(absl::string_view text);
// The same, but '/' stays.
std::string EscapeKey(absl::string_view key);

using Query = std::vector<std::pair<std::string, std::string>>;

// Where requests about one bucket go.
struct Endpoint {
  // http or https.
  std::string scheme = "https";
  // HOST or HOST:PORT.
  std::string host = {};
  // Between host and bucket, for a store behind a proxy; "" or "/PATH".
  std::string path = {};
  // The bucket is a part of the path, not of the host's name.
  bool path_style = false;
};
// INVALID_ARGUMENT unless it is http://HOST[:PORT][/PATH] or https://...; path-style.
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url);
// Amazon's own, of a region. Path-style only where the bucket's name has dots, which no wildcard
// certificate covers.
Endpoint AmazonEndpoint(const std::string& region, const std::string& bucket);
// Amazon's security token service of a region.
Endpoint AmazonStsEndpoint(const std::string& region);

// With the query sorted by name.
std::string UrlOf(const Endpoint& endpoint, const std::string& bucket, absl::string_view key,
                  Query query);

}  // namespace leeway
