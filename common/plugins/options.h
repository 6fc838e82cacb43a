// The options that a job gives to something of a plugin.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/map.h>

#include "absl/status/statusor.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

using GivenOptions = google::protobuf::Map<std::string, double>;

// INVALID_ARGUMENT: "must be above 0; it is -1".
absl::Status CheckBounds(const plugin::Option& option, double value);

// What is given, and the defaults of the rest. INVALID_ARGUMENT at the key of the option
// (common/job_key.h, options.NAME) that is unknown, missing or out of its bounds.
absl::StatusOr<plugin::Options> ReadOptions(const std::vector<plugin::Option>& known,
                                            const GivenOptions& given);

}  // namespace leeway
