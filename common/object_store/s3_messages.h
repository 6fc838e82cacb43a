// The XML that S3 speaks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// What a store says of a refusal. Empty where the body is no such document.
struct S3Error {
  // NoSuchBucket, AccessDenied, SlowDown ...
  std::string code;
  std::string message;
  // The one to use instead.
  std::string region;
};
S3Error ParseS3Error(const std::string& body);

struct S3Object {
  std::string key;
  uint64_t size = 0;
  // With its quotes, as in a header.
  std::string etag;
};
// One page of ListObjectsV2.
struct S3Listing {
  std::vector<S3Object> objects;
  // With the delimiter at their end.
  std::vector<std::string> prefixes;
  // For the next page; empty: this was the last one.
  std::string continuation;
};
// As the other parsers here: UNAVAILABLE if the body is not such a document. What is wrong may be
// the network's.
absl::StatusOr<S3Listing> ParseListing(const std::string& body);

struct S3Upload {
  std::string key;
  std::string id;
};
// One page of ListMultipartUploads.
struct S3Uploads {
  std::vector<S3Upload> uploads;
  // For the next page; the key is empty: this was the last one.
  S3Upload next;
};
absl::StatusOr<S3Uploads> ParseUploads(const std::string& body);

// The id of an upload that was begun.
absl::StatusOr<std::string> ParseUploadId(const std::string& body);

// OK if CompleteMultipartUpload has succeeded; the error may come under HTTP status 200. Then
// `error` has it.
absl::Status ParseCompleted(const std::string& body, S3Error& error);

// The parts in their order, from number 1, by the ETags that the store gave them.
std::string CompleteRequest(const std::vector<std::string>& etags);

}  // namespace leeway
