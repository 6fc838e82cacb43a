// Converts errors to the form of client.h: a code, and the text of this thread's last error.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "library/client.h"

namespace leeway {

// Keeps `text` for leeway_error(), and returns `code`.
leeway_code Fail(leeway_code code, std::string text);
leeway_code CodeOf(const absl::Status& status);
// Returns LEEWAY_AGAIN if `done` is false.
leeway_code CodeOf(const absl::StatusOr<bool>& done);

}  // namespace leeway
