// Reads a job's folder of pictures.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/data/holdout.h"

namespace leeway {

// Does the same as ReadSource, for the source `pictures` at the key `key`, which is data.train or
// data.test. If data.train is a folder of pictures, the classes of data.test are those of
// data.train. No picture is opened.
absl::StatusOr<std::unique_ptr<Dataset>> ReadPictures(const v1::TrainingJob& job,
                                                      const v1::ImageFolder& pictures,
                                                      const std::string& key,
                                                      const std::string& data_dir, Part part);

}  // namespace leeway
