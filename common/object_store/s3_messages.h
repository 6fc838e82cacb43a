// The XML messages of S3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// A store's explanation of a refusal. Empty if the body is not such a document.
struct S3Error {
  // NoSuchBucket, AccessDenied, SlowDown and so on.
  std::string code;
  std::string message;
  // The region to use instead.
  std::string region;
};
S3Error ParseS3Error(const std::string& body);

struct S3Object {
  std::string key;
  uint64_t size = 0;
  // Includes the quotes, as in a header.
  std::string etag;
};
// One page of ListObjectsV2.
struct S3Listing {
  std::vector<S3Object> objects;
  // Each prefix ends with the delimiter.
  std::vector<std::string> prefixes;
  // The token for the next page; empty if this is the last page.
  std::string continuation;
};
// Like the other parsers here, returns UNAVAILABLE if the body is not such a document: the network
// may be at fault.
absl::StatusOr<S3Listing> ParseListing(const std::string& body);

struct S3Upload {
  std::string key;
  std::string id;
};
// One page of ListMultipartUploads.
struct S3Uploads {
  std::vector<S3Upload> uploads;
  // The start of the next page; its key is empty if this is the last page.
  S3Upload next;
};
absl::StatusOr<S3Uploads> ParseUploads(const std::string& body);

// Returns the id of an upload that was begun.
absl::StatusOr<std::string> ParseUploadId(const std::string& body);

// OK if CompleteMultipartUpload has succeeded. Otherwise `error` has the store's error, which may
// come under HTTP status 200.
absl::Status ParseCompleted(const std::string& body, S3Error& error);

// Returns the request that lists the parts in order, from number 1, by the ETags that the store
// gave them.
std::string CompleteRequest(const std::vector<std::string>& etags);

}  // namespace leeway
