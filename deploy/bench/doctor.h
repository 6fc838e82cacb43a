// `leeway doctor`: what this machine can do, and what a job wants of it and will take on it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "deploy/bench/bench_process.h"
#include "deploy/bench/compute_probe.h"
#include "deploy/bench/host_rates.h"
#include "deploy/bench/peer.h"
#include "deploy/bench/step_model.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct DoctorOptions {
  // Of one measurement.
  double seconds = 0.5;
  // Where a `leeway doctor --listen` runs; empty: workers and servers share this machine.
  std::string peer;
  // The job to judge; absent: the machine alone.
  std::optional<v1::TrainingJob> job;
  std::string data_dir;
  // Where leeway-server is.
  std::string program_folder;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// About one job.
struct JobDiagnosis {
  ComputeFigures compute;
  uint64_t steps_per_clock = 1;
  // As the job is: what one clock is made of, and takes.
  StepParts parts;
  StepEstimate estimate;
  uint32_t servers = 0;
  uint64_t block_bytes = 0;
  // What the job wants.
  uint32_t servers_wanted = 0;
  uint64_t block_bytes_wanted = 0;
  double examples_per_second = 0;
};

struct Diagnosis {
  HostRates host;
  std::optional<PeerRates> peer;
  std::optional<JobDiagnosis> job;
};

// Takes some seconds; the machine should have nothing else to do.
absl::StatusOr<Diagnosis> Diagnose(const DoctorOptions& options);

std::string DiagnosisText(const Diagnosis& diagnosis);
// {"host": {...}, "peer": {...}, "job": {"step_seconds", "compute_seconds", "compute_cpu_seconds",
//   "exchange_seconds", "exchange_cpu_seconds", "stretch",
//   "hidden_seconds", "examples_per_second", "servers", "servers_wanted", "block_bytes",
//   "block_bytes_wanted", "processor_bound", "parameters", "steps_per_clock"}}
Json DiagnosisJson(const Diagnosis& diagnosis);

}  // namespace leeway
