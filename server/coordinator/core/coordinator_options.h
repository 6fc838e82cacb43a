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
  // The resolved job, with every default in it.
  v1::TrainingJob job;
  uint64_t job_id = 0;
  std::string job_sha256;
  std::string run_dir;
  // The network of the coordinator's process (common/rpc/host.h, NetworkIdentity); empty if
  // unknown.
  std::string network;
  // Incarnations rise from here. According to the previous coordinator's record, no life of this
  // run has a higher one.
  uint64_t incarnation_base = 0;
  // The generation in which the job begins; higher than any that was used before.
  uint64_t generation = 0;
  // The codec that `auto` stands for in this run, once it was chosen. The job's own text then says
  // it, too.
  std::optional<v1::Codec> auto_codec;
  // What to choose the codec by, if it was not chosen yet. It is chosen when all workers that begin
  // are here.
  std::optional<AutoBasis> auto_basis;
  // By rank, as far as the run's record and log say it: which device `auto` in workers.device
  // became, and what the workers of an fp16 job have reported.
  struct Ranks {
    std::vector<std::string> devices;
    std::vector<v1::LossScales> loss_scales;
    // From the rank that evaluates, by ascending clock: what the job's early_stop needs.
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
