// Checks all of a configuration from the coordinator before the server releases anything that it
// has. A refused configuration has changed nothing.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"

namespace leeway {

// What a server knows since it joined the job.
struct ServerFacts {
  const v1::TrainingJob& job;
  uint32_t server = 0;
  // The folder that the coordinator named when the server joined. Nothing is written or read
  // outside of it.
  const std::string& run_dir;
};

// A pure function. INVALID_ARGUMENT, naming the field, if a field is missing, is impossible, or
// does not fit the job. What follows from the job (its length, the blocks, the cuts) must be what
// this build computes. PERMISSION_DENIED for paths outside of the run folder.
absl::Status CheckConfiguration(const v1::ConfigureRequest& request, const ServerFacts& facts);

// A pure function. INVALID_ARGUMENT if the configuration cannot follow the one that the server
// holds. The model must be the same. Within a generation only the placement may change.
absl::Status CheckFollows(const v1::ConfigureRequest& held, const v1::ConfigureRequest& request);

}  // namespace leeway
