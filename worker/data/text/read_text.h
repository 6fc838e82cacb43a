// Reads a job's text source.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/holdout.h"

namespace leeway {

// Does the same as ReadSource, for the source `text` at the key `key`, which is data.train or
// data.test. If random_start is set, windows of the training source begin at random places, except
// in the held-out part. The held-out part is the end of each file, with the share job.data.holdout
// of the file's tokens.
absl::StatusOr<std::unique_ptr<Dataset>> ReadText(const v1::TrainingJob& job, const v1::Text& text,
                                                  const std::string& key,
                                                  const std::string& data_dir, Part part,
                                                  const std::function<bool(size_t)>& wants_file);

}  // namespace leeway
