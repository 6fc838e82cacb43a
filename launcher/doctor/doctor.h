// `leeway doctor`: what this machine can do, and what a job wants of it and will take on it.
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
  // Of one measurement.
  double seconds = 0.5;
  // Where a `leeway doctor --listen` runs; empty: workers and servers share this machine.
  std::string peer;
  // The job to judge; absent: the machine alone.
  std::optional<v1::TrainingJob> job;
  std::string data_dir;
  // Where leeway-server is.
  std::string program_folder;
  DeviceSources gpus;
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// About one job.
struct JobDiagnosis {
  ComputeFigures compute;
  uint64_t steps_per_clock = 1;
  // How many took part where all were measured at once: a job may have more than a machine can
  // hold, and what they took is then scaled.
  uint32_t workers_measured = 0;
  uint32_t servers_measured = 0;
  // As the job is: what one clock is made of, and would take by that.
  StepParts parts;
  StepEstimate estimate;
  // What neither has in it, for a person: "workers.emulate.slow".
  std::vector<std::string> left_out;
  // What compression leaves of the floats' bytes on the way on which more travels.
  double travel_share = 1;
  // The job itself, if it was tried: absent across a network, and where not all processes of the
  // job could be had. The figures that follow are by it where it is there, else by the estimate.
  std::optional<Rehearsal> rehearsal;
  // Why not, if it was begun and came to nothing.
  std::string rehearsal_error;
  double clock_seconds = 0;
  double hidden_seconds = 0;
  uint32_t servers = 0;
  uint64_t block_bytes = 0;
  // What the job wants. Not even so many servers may be enough to keep the exchange shorter than
  // the compute.
  uint32_t servers_wanted = 0;
  bool servers_enough = true;
  uint64_t block_bytes_wanted = 0;
  // Of the estimate as if every worker had whole batches.
  double examples_per_second = 0;
};

struct Diagnosis {
  HostRates host;
  GpuFindings gpus;
  std::optional<PeerRates> peer;
  std::optional<JobDiagnosis> job;
};

// Takes some seconds; the machine should have nothing else to do. After an error `diagnosis` has
// what was found before it, if anything.
absl::Status Diagnose(const DoctorOptions& options, std::optional<Diagnosis>& diagnosis);

std::string DiagnosisText(const Diagnosis& diagnosis);
// {"host": {...}, "gpus": (GpusJson), "peer": {...}, "job": {"step_seconds", "rehearsed_clocks" (0:
// step_seconds is the
//   estimate), "estimated_step_seconds", "compute_seconds", "compute_cpu_seconds",
//   "exchange_seconds", "exchange_cpu_seconds", "stretch", "hidden_seconds", "examples_per_second",
//   "workers", "workers_measured", "servers", "servers_measured", "servers_wanted",
//   "servers_enough", "block_bytes", "block_bytes_wanted", "processor_bound", "left_out" (of the
//   estimate), "parameters", "steps_per_clock", "rehearsal_error" (if there is one)}}
Json DiagnosisJson(const Diagnosis& diagnosis);

}  // namespace leeway
