// Reads the files of a NumPy source: .npy, or arrays of an .npz.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// The content decides whether a file is an .npz. The array of an .npz with only one array need not
// be named. Errors have their keys within the source.
absl::StatusOr<Examples> ReadNumpy(const v1::Numpy& source, const std::string& data_dir,
                                   const LabelRule& rule);

}  // namespace leeway
