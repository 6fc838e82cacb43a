// Converts an answer of the store to a status. The message has the request, bucket and key, the
// HTTP status and the store's code, and what to do.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/object_store/http.h"
#include "common/object_store/s3_messages.h"

namespace leeway {

// Returns whether the request may succeed if it is repeated. All other errors are permanent.
inline bool IsStoreRetryable(const absl::Status& status) { return absl::IsUnavailable(status); }

// Returns the status of an answer. `asked` describes the request: "PutObject s3://BUCKET/KEY at
// HOST". An answer with HTTP status 200 to 299 is an error if `error` has a code. The store's code
// determines the result. If the answer has no code, or an unknown one, the HTTP status does:
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
//   UNAVAILABLE          the failure may be temporary
absl::Status StatusOfAnswer(const std::string& asked, const HttpAnswer& answer,
                            const S3Error& error);

// Returns the time in the store's header Retry-After. Returns nothing if the header is absent or is
// a date.
std::optional<Duration> RetryAfter(const HttpAnswer& answer);

}  // namespace leeway
