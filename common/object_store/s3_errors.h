// What an answer of the store means: a typed error that says what was asked, of which bucket and
// key, the HTTP status and the store's code, and what to do about it.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/object_store/http.h"
#include "common/object_store/s3_messages.h"

namespace leeway {

// Worth sending again; everything else stays wrong.
inline bool IsStoreRetryable(const absl::Status& status) { return absl::IsUnavailable(status); }

// `asked`: "PutObject s3://BUCKET/KEY at HOST". Of an answer with status 200 to 299 too, if `error`
// has a code. By the store's code, else by the HTTP status:
//   NOT_FOUND            the object is not there
//   FAILED_PRECONDITION  the bucket is not there, or in another region; a request that is refused
//                        as such
//   UNAUTHENTICATED      the credentials are wrong or expired, or this host's clock is
//   PERMISSION_DENIED    they may not do it
//   ABORTED              the upload is not there (any more)
//   OUT_OF_RANGE, DATA_LOSS   a range that is not there; the object was replaced meanwhile
//   RESOURCE_EXHAUSTED   a quota or the store's disk is full
//   UNIMPLEMENTED        the store does not know such requests
//   UNAVAILABLE          everything that may pass
absl::Status StatusOfAnswer(const std::string& asked, const HttpAnswer& answer,
                            const S3Error& error);

// What the store asks for (Retry-After, in seconds); nothing: it does not, or as a date.
std::optional<Duration> RetryAfter(const HttpAnswer& answer);

}  // namespace leeway
