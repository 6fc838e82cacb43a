// Errors as client.h has them: a code, and the text of this thread's last error.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/client.h"

namespace leeway {

// Keeps the text for leeway_error().
leeway_code Fail(leeway_code code, std::string text);
leeway_code CodeOf(const absl::Status& status);
// LEEWAY_AGAIN if `done` is false.
leeway_code CodeOf(const absl::StatusOr<bool>& done);

}  // namespace leeway
