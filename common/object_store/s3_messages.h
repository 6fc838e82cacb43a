// The XML messages of S3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// A store's explanation of a refusal. All fields are empty if the body is not such a document.
struct S3Error {
  // The store's name for the error, such as NoSuchBucket, AccessDenied or SlowDown.
  std::string code;
  std::string message;
  // The region of the bucket, if the request was for another region.
  std::string region;
};
S3Error ParseS3Error(const std::string& body);

struct S3Object {
  std::string key;
  uint64_t size = 0;
  // The ETag with its quotes, as in a header.
  std::string etag;
};
// One page of ListObjectsV2.
struct S3Listing {
  std::vector<S3Object> objects;
  // The prefixes of the keys that contain the delimiter. Each prefix ends with the delimiter.
  std::vector<std::string> prefixes;
  // The token for the next page. Empty if this is the last page.
  std::string continuation;
};
// Parses one page of ListObjectsV2. Like the other parsers here, returns UNAVAILABLE if the body is
// not such a document, because the network may have damaged it.
absl::StatusOr<S3Listing> ParseListing(const std::string& body);

struct S3Upload {
  std::string key;
  std::string id;
};
// One page of ListMultipartUploads.
struct S3Uploads {
  std::vector<S3Upload> uploads;
  // The start of the next page. Its key is empty if this is the last page.
  S3Upload next;
};
absl::StatusOr<S3Uploads> ParseUploads(const std::string& body);

// Returns the id of an upload that was begun.
absl::StatusOr<std::string> ParseUploadId(const std::string& body);

// Returns OK if CompleteMultipartUpload has succeeded. Otherwise sets `error` to the store's error,
// which may come with HTTP status 200.
absl::Status ParseCompleted(const std::string& body, S3Error& error);

// Returns the body of CompleteMultipartUpload. It lists the ETags of the parts, in order, from part
// 1 on.
std::string CompleteRequest(const std::vector<std::string>& etags);

}  // namespace leeway
