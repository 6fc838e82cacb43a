#include "server/node/server_end.h"

#include "absl/strings/str_cat.h"
#include "common/exit_code.h"

namespace leeway {

ServerEnd EndOf(const absl::Status& joined) {
  switch (joined.code()) {
    case absl::StatusCode::kAborted:
      return {kExitReplaced, joined};
    case absl::StatusCode::kInvalidArgument:
      return {kExitUsage, joined};
    // The programs have different versions, or the job has failed.
    case absl::StatusCode::kFailedPrecondition:
    // The token or the certificate belongs to another job.
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return {kExitPermanent, joined};
    default:
      return {kExitTemporary, joined};
  }
}

ServerEnd EndOf(v1::JobState outcome, const std::string& message) {
  if (outcome == v1::JOB_STOPPED) return {kExitStopped, absl::OkStatus()};
  if (outcome != v1::JOB_FAILED) return {kExitDone, absl::OkStatus()};
  return {kExitPermanent, absl::InternalError(absl::StrCat("the job failed: ", message))};
}

ServerEnd EndOfFailed(const std::string& message, const v1::CoordinatorRecord* record) {
  // The record could not be written, for example because the disk is full. So the next life does
  // not know that the job has ended, and continues as after a kill.
  if (record != nullptr && record->outcome() == v1::JOB_STARTING) {
    return {kExitTemporary,
            absl::UnavailableError(
                message +
                "; the end of the job is not recorded, so the same command continues the job")};
  }
  const bool continues = record != nullptr && record->checkpointed() && !record->permanent();
  const char* const way = "; start server 0 with --resume to continue from the newest checkpoint";
  return EndOf(v1::JOB_FAILED, absl::StrCat(message, continues ? way : ""));
}

}  // namespace leeway
