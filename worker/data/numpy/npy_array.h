// Reads examples from NumPy arrays.
#pragma once

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Reads examples. `features` has the shape [examples, features], [examples, height, width] or
// [examples, height, width, channels]; `labels` has the shape [examples]. Unsigned bytes stay
// bytes, which stand for byte / 255. All other numbers become floats, and NaN is a missing value.
// Returns INVALID_ARGUMENT, naming the file and the byte, if a file is not valid. Sizes are checked
// before memory is allocated.
absl::StatusOr<Examples> ParseNpy(DataFile features, DataFile labels, const LabelRule& rule);

}  // namespace leeway
