#include "common/object_store/s3_errors.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/refusal.h"
#include "common/printable.h"

namespace leeway {
namespace {

using absl::StatusCode;

constexpr char kKeys[] =
    "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN or "
    "AWS_PROFILE, and that they belong to this store (AWS_ENDPOINT_URL)";
constexpr char kPolicy[] = "give these credentials the permissions that docs/storage.md lists";
// The advice if an answer has no reason. The answer to a HEAD request has only the status.
constexpr char kKeysOrPolicy[] =
    "the store gives no reason: the credentials may belong to another store, may have expired, or "
    "may lack the permissions that docs/storage.md lists";
constexpr char kNoStore[] = "the answer is not from an S3 store: check AWS_ENDPOINT_URL";
constexpr char kRegion[] = "set AWS_REGION to the bucket's region";
constexpr char kRoom[] = "free space in the store, or raise its quota";

constexpr Meaning kS3Errors[] = {
    {"NoSuchKey", StatusCode::kNotFound, ""},
    {"NoSuchBucket", StatusCode::kFailedPrecondition, "make the bucket, or name another one"},
    {"InvalidBucketName", StatusCode::kFailedPrecondition, "name another bucket"},
    {"NoSuchUpload", StatusCode::kAborted, ""},
    {"AccessDenied", StatusCode::kPermissionDenied, kPolicy},
    {"AllAccessDisabled", StatusCode::kPermissionDenied, kPolicy},
    {"InvalidAccessKeyId", StatusCode::kUnauthenticated, kKeys},
    {"SignatureDoesNotMatch", StatusCode::kUnauthenticated, kKeys},
    {"InvalidToken", StatusCode::kUnauthenticated, kKeys},
    {"ExpiredToken", StatusCode::kUnauthenticated, "the credentials have expired: renew them"},
    {"TokenRefreshRequired", StatusCode::kUnauthenticated,
     "the credentials have expired: renew them"},
    {"RequestTimeTooSkewed", StatusCode::kUnauthenticated, "correct this host's clock"},
    {"AuthorizationHeaderMalformed", StatusCode::kFailedPrecondition, kRegion},
    {"PermanentRedirect", StatusCode::kFailedPrecondition, kRegion},
    {"InvalidRange", StatusCode::kOutOfRange, ""},
    {"PreconditionFailed", StatusCode::kDataLoss, "the object was replaced while it was read"},
    {"QuotaExceeded", StatusCode::kResourceExhausted, kRoom},
    {"XMinioStorageFull", StatusCode::kResourceExhausted, kRoom},
    {"XMinioAdminBucketQuotaExceeded", StatusCode::kResourceExhausted, kRoom},
    {"EntityTooLarge", StatusCode::kResourceExhausted, "lower LEEWAY_S3_PART_BYTES"},
    {"EntityTooSmall", StatusCode::kFailedPrecondition, "raise LEEWAY_S3_PART_BYTES"},
    {"NotImplemented", StatusCode::kUnimplemented, ""},
    {"MethodNotAllowed", StatusCode::kUnimplemented, ""},
    // Stores return these errors with status 400, although they are temporary.
    {"RequestTimeout", StatusCode::kUnavailable, ""},
    {"IncompleteBody", StatusCode::kUnavailable, ""},
    {"BadDigest", StatusCode::kUnavailable, ""},
    {"XAmzContentSHA256Mismatch", StatusCode::kUnavailable, ""},
    {"OperationAborted", StatusCode::kUnavailable, ""},
    {"InternalError", StatusCode::kUnavailable, ""},
    {"SlowDown", StatusCode::kUnavailable, ""},
};

Meaning ByStatus(int status) {
  switch (status) {
    case 301:
    case 307:
      return {"", StatusCode::kFailedPrecondition, kRegion};
    case 401:
      return {"", StatusCode::kUnauthenticated, kKeys};
    case 403:
      return {"", StatusCode::kPermissionDenied, kKeysOrPolicy};
    case 404:
      return {"", StatusCode::kNotFound, ""};
    case 405:
    case 501:
      return {"", StatusCode::kUnimplemented, ""};
    case 412:
      return {"", StatusCode::kDataLoss, "the object was replaced while it was read"};
    case 416:
      return {"", StatusCode::kOutOfRange, ""};
    case 507:
      return {"", StatusCode::kResourceExhausted, kRoom};
    case 408:
    case 429:
      return {"", StatusCode::kUnavailable, ""};
    default:
      // An error with a status below 300 is temporary, too.
      return {"",
              status >= 500 || status < 300 ? StatusCode::kUnavailable
                                            : StatusCode::kFailedPrecondition,
              ""};
  }
}

Meaning S3ErrorMeaning(int status, const std::string& name) {
  const Meaning* known = FindMeaning(kS3Errors, name);
  return known != nullptr ? *known : ByStatus(status);
}

}  // namespace

absl::Status StatusOfAnswer(const std::string& asked, const HttpAnswer& answer,
                            const S3Error& error) {
  const bool good = answer.status >= 200 && answer.status < 300;
  if (good && error.code.empty()) return absl::OkStatus();
  Meaning meaning = S3ErrorMeaning(answer.status, error.code);
  // A store that gives a reason also sends the name of the error. An answer with content but
  // without a name may come from a server in front of the store.
  const bool foreign = error.code.empty() && !answer.body.empty();
  if (foreign && meaning.code != StatusCode::kUnavailable) {
    meaning = {"", StatusCode::kFailedPrecondition, kNoStore};
  }
  std::string text = absl::StrCat(
      asked, ": ", RefusalText(answer.status, error.code, error.message, meaning.advice));
  const std::string region = error.region.empty()
                                 ? Printable(answer.Header("x-amz-bucket-region"), kWordBytesMax)
                                 : error.region;
  if (meaning.advice == kRegion && !region.empty()) absl::StrAppend(&text, ", ", region);
  return absl::Status(meaning.code, text);
}

std::optional<Duration> RetryAfter(const HttpAnswer& answer) {
  uint32_t seconds = 0;
  if (!absl::SimpleAtoi(answer.Header("retry-after"), &seconds)) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace leeway
