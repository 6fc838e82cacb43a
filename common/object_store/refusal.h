// Explains refusals by HTTP services, and forms the error message.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

struct Meaning {
  // The service's name for the refusal.
  const char* name;
  absl::StatusCode code;
  // What the user can do. Empty if there is no particular advice.
  const char* advice;
};

// Returns the meaning of a refusal's name, or null if `known` does not have the name.
const Meaning* FindMeaning(std::span<const Meaning> known, absl::string_view name);

// Returns "HTTP 403, NAME (MESSAGE); ADVICE", without the parts whose arguments are empty.
std::string RefusalText(int http_status, absl::string_view name, absl::string_view message,
                        absl::string_view advice);

}  // namespace leeway
