// Examples made by the seed.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Classes are Gaussian clusters: class c has a centre drawn from N(0, 1), the same for every split,
// and example i of class i mod classes lies around it with standard deviation `noise`.
absl::StatusOr<Examples> Generate(const v1::Generator& options, uint64_t seed,
                                  const LabelRule& rule);

}  // namespace leeway
