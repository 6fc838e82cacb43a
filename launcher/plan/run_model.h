// Builds a job's model for commands that need the model itself, not its training.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/data/shape.h"
#include "worker/model/model.h"

namespace leeway {

struct BuiltModel {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

// Returns the shape of the job's examples. If `given` ([features] or [height, width, channels]) is
// not empty, it is the shape. Otherwise a generator specifies the shape, or the function reads the
// training data to find it. `data` is the value of --data.
absl::StatusOr<ImageShape> ExampleShape(const v1::TrainingJob& job,
                                        const std::vector<uint32_t>& given,
                                        const std::string& data);

// Builds the model for examples of this shape, on the CPU. `parameters` is the number of weights
// that the caller has for the model. Returns FAILED_PRECONDITION if the model has another number.
absl::StatusOr<BuiltModel> BuildModel(const v1::TrainingJob& job, const ImageShape& shape,
                                      uint64_t parameters);

}  // namespace leeway
