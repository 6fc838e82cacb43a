// The options with which a coordinator begins: the job, and what is known of the job's run so far.
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
  // The resolved job, with every default in it.
  v1::TrainingJob job;
  uint64_t job_id = 0;
  std::string job_sha256;
  std::string run_dir;
  // The network of the coordinator's process (common/rpc/host.h, NetworkIdentity); empty if
  // unknown.
  std::string network;
  // The highest incarnation that a life of this run can have, according to the previous
  // coordinator's record. New incarnations are higher.
  uint64_t incarnation_base = 0;
  // The generation in which the job begins; higher than any that was used before.
  uint64_t generation = 0;
  // The codec that was chosen for `auto` in this run. Absent if no codec was chosen yet; otherwise
  // `job` has the codec, too.
  std::optional<v1::Codec> auto_codec;
  // The basis on which the core chooses the codec, once all ranks have registered. Absent if the
  // codec was chosen earlier.
  std::optional<AutoBasis> auto_basis;
  // What the run's record and log contain about the ranks. `devices` are the devices chosen for
  // `auto` in workers.device, by rank. `loss_scales` are the reports of the workers of an fp16 job,
  // by rank.
  struct Ranks {
    std::vector<std::string> devices;
    std::vector<v1::LossScales> loss_scales;
    // The evaluations that the job's early_stop needs, in ascending order of their clocks. They
    // come from the rank that evaluates.
    std::vector<v1::EvaluationMetrics> evaluations;
  };
  Ranks ranks;
  // The record that the previous coordinator of the same job left when its process was killed.
  std::optional<v1::CoordinatorRecord> before;

  struct Resumed {
    v1::CheckpointManifest manifest;
    std::string folder;
  };
  std::optional<Resumed> resumed;
};

}  // namespace leeway
