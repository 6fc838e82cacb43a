// The files of a NumPy source: .npy, or arrays of an .npz.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Whether a file is a zip or not is seen by its content. An .npz with one array needs no name of
// it. Errors have the key within the source.
absl::StatusOr<Examples> ReadNumpy(const v1::Numpy& source, const std::string& data_dir,
                                   const LabelRule& rule);

}  // namespace leeway
