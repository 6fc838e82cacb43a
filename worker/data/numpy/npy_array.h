// Examples in NumPy arrays.
#pragma once

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// `features` of the shapes [examples, features], [examples, height, width] or [examples, height,
// width, channels]; `labels` of [examples]. Unsigned bytes stay bytes, which stand for byte / 255;
// all other numbers become floats, and NaN is a missing value. INVALID_ARGUMENT names the file and
// the byte; sizes are checked before memory is taken.
absl::StatusOr<Examples> ParseNpy(DataFile features, DataFile labels, const LabelRule& rule);

}  // namespace leeway
