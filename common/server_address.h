// Checks the addresses that servers announce.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Returns INVALID_ARGUMENT, naming the field, unless the address is printable and of the form
// HOST:PORT, with a port of 1 to 65535.
absl::Status CheckServerAddress(absl::string_view field, absl::string_view address);
// Returns INVALID_ARGUMENT, naming the field, unless the address is of the form unix-abstract:NAME.
absl::Status CheckLocalAddress(absl::string_view field, absl::string_view address);

}  // namespace leeway
