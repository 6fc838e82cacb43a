// The model of a job as commands need it that look at the model itself, not at how it is trained.
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

// The shape of the job's examples: `given` ([features] or [height, width, channels]) unless it is
// empty, else that of its training data, which are read for it where no generator says it. `data`
// is
// --data.
absl::StatusOr<ImageShape> ExampleShape(const v1::TrainingJob& job,
                                        const std::vector<uint32_t>& given,
                                        const std::string& data);

// The model for such examples, on the CPU. FAILED_PRECONDITION unless it has `parameters`, those of
// the weights that it is to be used with.
absl::StatusOr<BuiltModel> BuildModel(const v1::TrainingJob& job, const ImageShape& shape,
                                      uint64_t parameters);

}  // namespace leeway
