// Error handling. All code uses absl::Status, and common/rpc/grpc_status.h converts it to and from
// gRPC's status. A message says what was being done, to what, by whom, and what to do.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace leeway {

// Returns the status with `context` and a colon before the message.
inline absl::Status Annotate(const absl::Status& status, absl::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace leeway

#define LEEWAY_CONCAT_INNER(a, b) a##b
#define LEEWAY_CONCAT(a, b) LEEWAY_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expression)                                                           \
  do {                                                                                        \
    if (absl::Status leeway_status = (expression); !leeway_status.ok()) return leeway_status; \
  } while (false)

#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_IMPL(LEEWAY_CONCAT(leeway_or_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_IMPL(result, target, expression) \
  auto result = (expression);                             \
  if (!result.ok()) return result.status();               \
  target = std::move(result).value()
