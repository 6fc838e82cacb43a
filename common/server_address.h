// Addresses that servers announce.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

// INVALID_ARGUMENT, naming the field, unless it is HOST:PORT, printable, with a port of 1 to 65535.
absl::Status CheckServerAddress(absl::string_view field, absl::string_view address);
// INVALID_ARGUMENT, naming the field, unless it is unix-abstract:NAME.
absl::Status CheckLocalAddress(absl::string_view field, absl::string_view address);

}  // namespace leeway
