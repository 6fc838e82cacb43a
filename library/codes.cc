#include "library/codes.h"

#include <utility>

#include "common/exit_code.h"

namespace leeway {
namespace {

thread_local std::string last_error;

leeway_code CodeOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return LEEWAY_OK;
    case absl::StatusCode::kInvalidArgument:
    // The token or the certificate is wrong.
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return LEEWAY_INVALID_ARGUMENT;
    case absl::StatusCode::kDeadlineExceeded:
      return LEEWAY_DEADLINE_EXCEEDED;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
      return LEEWAY_UNAVAILABLE;
    case absl::StatusCode::kAborted:
      return LEEWAY_REPLACED;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
      return LEEWAY_FAILED_PRECONDITION;
    case absl::StatusCode::kOutOfRange:
      return LEEWAY_NOT_FINITE;
    case absl::StatusCode::kNotFound:
      return LEEWAY_NOT_FOUND;
    case absl::StatusCode::kUnimplemented:
      return LEEWAY_MISUSE;
    case absl::StatusCode::kResourceExhausted:
      return LEEWAY_NO_MEMORY;
    default:
      return LEEWAY_INTERNAL;
  }
}

}  // namespace

leeway_code Fail(leeway_code code, std::string text) {
  last_error = std::move(text);
  return code;
}

leeway_code CodeOf(const absl::Status& status) {
  if (status.ok()) return LEEWAY_OK;
  return Fail(CodeOf(status.code()), std::string(status.message()));
}

leeway_code CodeOf(const absl::StatusOr<bool>& done) {
  if (!done.ok()) return CodeOf(done.status());
  return *done ? LEEWAY_OK : LEEWAY_AGAIN;
}

}  // namespace leeway

extern "C" {

const char* leeway_error(void) { return leeway::last_error.c_str(); }

int leeway_exit_code(leeway_code code) {
  switch (code) {
    case LEEWAY_OK:
    case LEEWAY_FINISHED:
      return leeway::kExitDone;
    case LEEWAY_STOPPED:
      return leeway::kExitStopped;
    case LEEWAY_REPLACED:
      return leeway::kExitReplaced;
    case LEEWAY_FAILED:
    case LEEWAY_INVALID_ARGUMENT:
    case LEEWAY_DEADLINE_EXCEEDED:
    case LEEWAY_NOT_FINITE:
    case LEEWAY_NOT_FOUND:
    case LEEWAY_MISUSE:
    case LEEWAY_FORKED:
    case LEEWAY_NO_MEMORY:
      return leeway::kExitPermanent;
    default:
      return leeway::kExitTemporary;
  }
}

}  // extern "C"
