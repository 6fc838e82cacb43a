// The options that a job sets for a layer, loss or rule of a plugin.
#pragma once

#include <string>
#include <vector>

#include <google/protobuf/map.h>

#include "absl/status/statusor.h"
#include "plugin/leeway/plugin.h"

namespace leeway {

using GivenOptions = google::protobuf::Map<std::string, double>;

// Returns INVALID_ARGUMENT if the value is out of the option's bounds. The message reads "must be
// at least 0; it is -1".
absl::Status CheckBounds(const plugin::Option& option, double value);

// Returns the options in `given`, and the defaults of the other options. Returns INVALID_ARGUMENT,
// with the option's key options.NAME (common/job_key.h), if an option is unknown, missing or out of
// bounds.
absl::StatusOr<plugin::Options> ReadOptions(const std::vector<plugin::Option>& known,
                                            const GivenOptions& given);

}  // namespace leeway
