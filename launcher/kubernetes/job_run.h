// Turns a job and the flags of `leeway kubernetes` into the run whose manifests are printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "config/job.h"
#include "launcher/kubernetes/run_manifests.h"

namespace leeway {

struct KubernetesFlags {
  // Flags set some fields of `run` directly. The other fields come from the job.
  KubernetesRun run;
  std::string shape = "jobset";
  std::string keys;
  std::optional<std::string> secrets;
  bool insecure = false;
  // -1 if the flag is absent.
  int64_t gpus = -1;
  std::vector<std::string> files;
};

// `data` is the value of --data, and `job_file` is the file of the job (FindDataFolder). Returns
// INVALID_ARGUMENT, naming the flag or the job's key, if the job needs something that is impossible
// in pods. Reads the job's data to compute memory sizes, unless the flags set them.
absl::StatusOr<KubernetesRun> RunOfJob(PlacedJob placed, const std::string& job_file,
                                       const std::string& data, const KubernetesFlags& flags);

}  // namespace leeway
