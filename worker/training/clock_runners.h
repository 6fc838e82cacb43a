// The constructors of the runners, for make.cc. All other files include
// worker/training/clock_runner.h.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "worker/training/clock_runner.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<ClockRunner>> MakeGradientRunner(const RunnerContext& context);
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeDeltaRunner(const RunnerContext& context);
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeElasticRunner(const RunnerContext& context);
// For a delta or elastic exchange with `spread`.
absl::StatusOr<std::unique_ptr<ClockRunner>> MakeSpreadRunner(const RunnerContext& context);

}  // namespace leeway
