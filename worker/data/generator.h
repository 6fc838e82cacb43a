// Generates examples from the job's seed.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "leeway/v1/job.pb.h"
#include "worker/data/examples.h"
#include "worker/data/labels.h"

namespace leeway {

// Draws examples of classes that are Gaussian clusters. Class c has a centre drawn from N(0, 1),
// which is the same for every split. Example i has class i mod classes. It is drawn around the
// centre of its class with standard deviation `noise`.
absl::StatusOr<Examples> Generate(const v1::Generator& options, uint64_t seed,
                                  const LabelRule& rule);

}  // namespace leeway
