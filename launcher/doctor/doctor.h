// `leeway doctor` measures what this machine can do, and estimates what a job needs and how long it
// takes on this machine.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/base/bench_process.h"
#include "launcher/doctor/compute_probe.h"
#include "launcher/doctor/gpus.h"
#include "launcher/doctor/host_rates.h"
#include "launcher/doctor/peer.h"
#include "launcher/doctor/rehearsal.h"
#include "launcher/doctor/step_model.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

struct DoctorOptions {
  // The duration of one measurement.
  double seconds = 0.5;
  // The address of a machine that runs `leeway doctor --listen`. Empty if workers and servers share
  // this machine.
  std::string peer;
  // The job to examine. If absent, only the machine is examined.
  std::optional<v1::TrainingJob> job;
  std::string data_dir;
  // The folder of leeway-server.
  std::string program_folder;
  DeviceSources gpus;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// The findings about one job.
struct JobDiagnosis {
  ComputeFigures compute;
  uint64_t steps_per_clock = 1;
  // How many processes took part in the joint measurements. If the machine cannot hold all
  // processes of the job, fewer take part, and the measured times are scaled.
  uint32_t workers_measured = 0;
  uint32_t servers_measured = 0;
  // The parts of one clock of the job.
  StepParts parts;
  // The time of a clock, estimated from `parts`.
  StepEstimate estimate;
  // The keys of the job that the estimate leaves out, for a person to read, such as
  // "workers.emulate.slow".
  std::vector<std::string> left_out;
  // The compressed bytes as a share of the floats' bytes, in the direction with more traffic.
  double travel_share = 1;
  // The result of running the job itself. Absent with `peer`, and if not all processes of the job
  // could be started. The following figures come from the rehearsal if it is present, and otherwise
  // from the estimate.
  std::optional<Rehearsal> rehearsal;
  // Why the rehearsal failed. Empty if it succeeded or did not begin.
  std::string rehearsal_error;
  double clock_seconds = 0;
  double hidden_seconds = 0;
  uint32_t servers = 0;
  uint64_t block_bytes = 0;
  // The number of servers that the job needs. If `servers_enough` is false, the exchange takes
  // longer than the compute even with this number.
  uint32_t servers_wanted = 0;
  bool servers_enough = true;
  uint64_t block_bytes_wanted = 0;
  // The rate of all workers together. An estimate assumes that every batch is whole.
  double examples_per_second = 0;
};

struct Diagnosis {
  HostRates host;
  GpuFindings gpus;
  std::optional<PeerRates> peer;
  std::optional<JobDiagnosis> job;
};

// Examines the machine and the job. This takes some seconds, during which the machine should do
// nothing else. After an error `diagnosis` has what was found before the error, or is absent.
absl::Status Diagnose(const DoctorOptions& options, std::optional<Diagnosis>& diagnosis);

std::string DiagnosisText(const Diagnosis& diagnosis);
// {"host": {...}, "gpus": (GpusJson), "peer": {...},
//  "job": {"step_seconds", "rehearsed_clocks" (0: step_seconds is the estimate),
//    "estimated_step_seconds", "compute_seconds", "compute_cpu_seconds", "exchange_seconds",
//    "exchange_cpu_seconds", "stretch", "hidden_seconds", "examples_per_second", "workers",
//    "workers_measured", "servers", "servers_measured", "servers_wanted", "servers_enough",
//    "block_bytes", "block_bytes_wanted", "processor_bound", "left_out" (from the estimate),
//    "parameters", "steps_per_clock", "rehearsal_error" (if it failed)}}
Json DiagnosisJson(const Diagnosis& diagnosis);

}  // namespace leeway
