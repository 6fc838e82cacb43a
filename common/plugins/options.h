// The options that a job gives to a layer, loss or rule of a plugin.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/map.h>

#include "absl/status/statusor.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

using GivenOptions = google::protobuf::Map<std::string, double>;

// INVALID_ARGUMENT with a text such as "must be above 0; it is -1".
absl::Status CheckBounds(const plugin::Option& option, double value);

// Returns the given options, and the defaults of the others. INVALID_ARGUMENT, at the option's key
// (common/job_key.h, options.NAME), if an option is unknown, missing or out of bounds.
absl::StatusOr<plugin::Options> ReadOptions(const std::vector<plugin::Option>& known,
                                            const GivenOptions& given);

}  // namespace leeway
