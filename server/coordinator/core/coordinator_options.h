// What a coordinator begins with: the job, and what is known of its run so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/coordinator/core/auto_choice.h"

namespace leeway {

struct CoordinatorOptions {
  // Resolved, with every default in it.
  v1::TrainingJob job;
  uint64_t job_id = 0;
  std::string job_sha256;
  std::string run_dir;
  // Of the coordinator's process (common/rpc/host.h, NetworkIdentity); empty: unknown.
  std::string network;
  // Incarnations rise from here: no life of this run has a higher one (the record of the
  // coordinator before says so).
  uint64_t incarnation_base = 0;
  // Of the job so far; more than any that was used before.
  uint64_t generation = 0;
  // What `auto` stands for in this run's compression, once that was chosen; the job says it
  // already.
  std::optional<v1::Codec> auto_codec;
  // What it is to be chosen by, where it is not: when all are here who begin.
  std::optional<AutoBasis> auto_basis;
  // By rank, as far as the run's record and log say: what `auto` came to in workers.device, and
  // what the workers of an fp16 job have reported.
  struct Ranks {
    std::vector<std::string> devices;
    std::vector<v1::LossScales> loss_scales;
    // Of the rank that evaluates, by rising clock: what the job's early_stop needs of them.
    std::vector<v1::EvaluationMetrics> evaluations;
  };
  Ranks ranks;
  // What the coordinator before this one, whose process was killed, has left of the same job.
  std::optional<v1::CoordinatorRecord> before;

  struct Resumed {
    v1::CheckpointManifest manifest;
    std::string folder;
  };
  std::optional<Resumed> resumed;
};

}  // namespace leeway
