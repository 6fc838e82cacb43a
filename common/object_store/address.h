// Names of objects: s3://BUCKET/KEY, and the URL for each.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

inline constexpr char kObjectScheme[] = "s3://";

// Whether the location begins with s3://.
bool IsObjectLocation(absl::string_view location);

struct ObjectLocation {
  std::string bucket;
  // Has no slash at its beginning or end. Empty: the location is the bucket itself.
  std::string key;
};
// INVALID_ARGUMENT, with the reason: the bucket is missing, its name is not valid, or the key has
// an empty part, "." or "..", control characters, or more than 900 bytes (S3 allows 1024; the rest
// is for names of files).
absl::StatusOr<ObjectLocation> ParseObjectLocation(absl::string_view location);
// s3://BUCKET/KEY
std::string LocationText(const std::string& bucket, absl::string_view key);

// Escapes text as S3's signatures require: everything but A-Z a-z 0-9 - . _ ~ becomes %XX, in
// capitals.
std::string EscapeQuery(absl::string_view text);
// As EscapeQuery, but '/' stays.
std::string EscapeKey(absl::string_view key);

using Query = std::vector<std::pair<std::string, std::string>>;

// The address for requests about one bucket.
struct Endpoint {
  // http or https.
  std::string scheme = "https";
  // HOST or HOST:PORT.
  std::string host = {};
  // A path between host and bucket, for a store behind a proxy; "" or "/PATH".
  std::string path = {};
  // Whether the bucket is part of the path instead of the host's name.
  bool path_style = false;
};
// Returns a path-style endpoint. INVALID_ARGUMENT unless `url` is http://HOST[:PORT][/PATH] or
// https://...
absl::StatusOr<Endpoint> ParseEndpoint(absl::string_view url);
// Returns Amazon's endpoint for a region. It is path-style only if the bucket's name has dots,
// which no wildcard certificate covers, or underscores.
Endpoint AmazonEndpoint(const std::string& region, const std::string& bucket);
// Returns the endpoint of Amazon's security token service for a region.
Endpoint AmazonStsEndpoint(const std::string& region);

// The URL of a request, with the query sorted by name.
std::string UrlOf(const Endpoint& endpoint, const std::string& bucket, absl::string_view key,
                  Query query);

}  // namespace leeway
