// Converts exceptions of plugins to errors, so that no exception leaves the code that calls a
// plugin.
#pragma once

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {

// Calls `call`. If it throws, returns INVALID_ARGUMENT with the exception's message.
template <typename Call>
absl::Status Guarded(Call&& call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const std::exception& thrown) {
    return absl::InvalidArgumentError(Printable(thrown.what()));
  } catch (...) {
    return absl::InvalidArgumentError(
        "the plugin threw an object that is not a std::exception, so the reason is unknown");
  }
}

}  // namespace leeway
