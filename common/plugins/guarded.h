// Exceptions of plugins become errors: none leaves the code that calls a plugin.
#pragma once

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/printable.h"

namespace leeway {

// Calls `call`. INVALID_ARGUMENT with what it has thrown.
template <typename Call>
absl::Status Guarded(Call&& call) {
  try {
    call();
    return absl::OkStatus();
  } catch (const std::exception& thrown) {
    return absl::InvalidArgumentError(Printable(thrown.what()));
  } catch (...) {
    return absl::InvalidArgumentError(
        "the plugin threw something that is no std::exception, so it says nothing");
  }
}

}  // namespace leeway
