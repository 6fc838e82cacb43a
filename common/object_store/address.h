// Locations of objects, s3://BUCKET/KEY, and their URLs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr char kObjectScheme[] = "s3://";

// Returns whether the location begins with s3://.
bool IsObjectLocation(absl::string_view location);

struct ObjectLocation {
  std::string bucket;
  // The key has no slash at its beginning or end. If it is empty, the location is the bucket
  // itself.
  std::string key;
};
// Returns INVALID_ARGUMENT, with the reason, if the bucket is missing or its name is not valid, or
// if the key has an empty part, "." or "..", control characters, or more than 900 bytes. (S3 allows
// 1024 bytes. The remaining 124 bytes are left for the names of files below the key.)
absl::StatusOr<ObjectLocation> ParseObjectLocation(absl::string_view location);
// Returns "s3://BUCKET/KEY".
std::string LocationText(const std::string& bucket, absl::string_view key);

// Escapes text as S3's signatures require. Each byte other than A-Z a-z 0-9 - . _ ~ becomes %XX, in
// capitals.
std::string EscapeQuery(absl::string_view text);
// Does the same as EscapeQuery, but leaves '/' unchanged.
std::string EscapeKey(absl::string_view key);

using Query = std::vector<std::pair<std::string, std::string>>;

// The address to which requests about one bucket are sent.
struct Endpoint {
  // http or https.
  std::string scheme = "https";
  // HOST or HOST:PORT.
  std::string host = {};
  // The path between host and bucket, for a store behind a proxy. It is "" or "/PATH".
  std::string path = {};
  // Whether the bucket is a part of the path. If not, it is a part of the host's name.
  bool path_style = false;
};
// Returns a path-style endpoint. Returns INVALID_ARGUMENT unless `url` is http://HOST[:PORT][/PATH]
// or https://...
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url);
// Returns Amazon's endpoint for a region. The endpoint is path-style only if the bucket's name has
// dots, which a wildcard certificate does not cover, or underscores.
Endpoint AmazonEndpoint(const std::string& region, const std::string& bucket);
// Returns the endpoint of Amazon's security token service for a region.
Endpoint AmazonStsEndpoint(const std::string& region);

// Returns the URL of a request, with the query sorted by name.
std::string UrlOf(const Endpoint& endpoint, const std::string& bucket, absl::string_view key,
                  Query query);

}  // namespace leeway
