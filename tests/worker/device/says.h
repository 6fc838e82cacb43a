// Matches what an error has to say.
#pragma once

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace leeway::testing {

inline bool Says(const absl::Status& status, std::initializer_list<absl::string_view> parts) {
  for (const absl::string_view part : parts) {
    if (!absl::StrContains(status.message(), part)) return false;
  }
  return !status.ok();
}

}  // namespace leeway::testing
