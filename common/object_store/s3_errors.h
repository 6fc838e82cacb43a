// Turns an answer of the store into a typed error. Its text has the request, bucket and key, the
// HTTP status and the store's code, and what to do.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/object_store/http.h"
#include "common/object_store/s3_messages.h"

namespace leeway {

// Whether a repetition may succeed. All other errors are permanent.
inline bool IsStoreRetryable(const absl::Status& status) { return absl::IsUnavailable(status); }

// `asked`: "PutObject s3://BUCKET/KEY at HOST". An answer with status 200 to 299 is an error if
// `error` has a code. The store's code decides, or else the HTTP status:
//   NOT_FOUND            the object does not exist
//   FAILED_PRECONDITION  the bucket does not exist or is in another region, or the store refuses
//                        the request as such
//   UNAUTHENTICATED      the credentials are wrong or expired, or this host's clock is wrong
//   PERMISSION_DENIED    the credentials lack a permission
//   ABORTED              the upload does not exist (any more)
//   OUT_OF_RANGE         the object does not have the range
//   DATA_LOSS            the object was replaced meanwhile
//   RESOURCE_EXHAUSTED   a quota or the store's disk is full
//   UNIMPLEMENTED        the store does not know such requests
//   UNAVAILABLE          everything that may pass
absl::Status StatusOfAnswer(const std::string& asked, const HttpAnswer& answer,
                            const S3Error& error);

// Returns the store's Retry-After in seconds; nothing if the header is absent or is a date.
std::optional<Duration> RetryAfter(const HttpAnswer& answer);

}  // namespace leeway
