// What the coordinator tells a server to hold, looked at whole before the server lets go of
// anything that it has: a configuration that is refused has changed nothing.
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
  // The folder that the coordinator named then; nothing is written or read outside of it.
  const std::string& run_dir;
};

// Pure. INVALID_ARGUMENT, naming the field, unless every field is there, can be true, and fits the
// job: what follows from the job (its length, the blocks, the cuts) must be what this build
// computes. PERMISSION_DENIED for paths outside of the run folder.
absl::Status CheckConfiguration(const v1::ConfigureRequest& request, const ServerFacts& facts);

// Pure. INVALID_ARGUMENT unless the configuration can follow the one that the server holds: the
// model is the same; within a generation so is everything but who holds what.
absl::Status CheckFollows(const v1::ConfigureRequest& held, const v1::ConfigureRequest& request);

}  // namespace leeway
