// Checks a configuration from the coordinator completely before the server releases anything, so
// that a refused configuration changes nothing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// The facts that a server learned when it joined the job.
struct ServerFacts {
  const v1::TrainingJob& job;
  uint32_t server = 0;
  // The folder that the coordinator named when the server joined. Nothing is written or read
  // outside of it.
  const std::string& run_dir;
};

// A pure function. Returns INVALID_ARGUMENT, naming the field, if a field is missing, is
// impossible, or does not fit the job. Values that follow from the job (its length, the blocks, the
// cuts) must equal the values that this build computes. Returns PERMISSION_DENIED for paths
// outside of the run folder.
absl::Status CheckConfiguration(const v1::ConfigureRequest& request, const ServerFacts& facts);

// A pure function. Returns INVALID_ARGUMENT if `request` cannot follow `held`, the configuration
// that the server has. The model must be the same. Within a generation only the placement may
// change.
absl::Status CheckFollows(const v1::ConfigureRequest& held, const v1::ConfigureRequest& request);

}  // namespace leeway
