// Refusals of requests by HTTP services: what they mean, and how errors say them.
#pragma once

#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace leeway {

struct Meaning {
  // The service's, of the refusal.
  const char* name;
  absl::StatusCode code;
  // What to do; empty: nothing in particular.
  const char* advice;
};

// Null if the name is not among those that are known.
const Meaning* FindMeaning(std::span<const Meaning> known, absl::string_view name);

// "HTTP 403, NAME (MESSAGE); ADVICE", without what is empty.
std::string RefusalText(int http_status, absl::string_view name, absl::string_view message,
                        absl::string_view advice);

}  // namespace leeway
