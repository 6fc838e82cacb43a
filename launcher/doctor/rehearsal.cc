#include "launcher/doctor/rehearsal.h"

#include <chrono>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <poll.h>

#include "absl/strings/str_cat.h"
#include "bench/base/real_servers.h"
#include "common/clock.h"
#include "common/files/files.h"
#include "common/status.h"
#include "config/job.h"
#include "launcher/doctor/job_exchange.h"

namespace leeway {
namespace {

// Heartbeats come every half second.
constexpr int kLookEveryMs = 250;
constexpr Duration kLimit = std::chrono::seconds(60);
constexpr uint64_t kMetricsBytesMax = 64 << 20;
constexpr uint64_t kLogBytesMax = 1 << 20;
constexpr uint64_t kClocksAtLeast = 3;

// The figures of a heartbeat: how many clocks the worker has completed, and its examples, seconds
// of exchange and seconds of waiting since the previous heartbeat.
struct Mark {
  uint64_t clock = 0;
  uint64_t examples = 0;
  double exchange = 0;
  double wait = 0;
};
// The marks of a worker by the time of the heartbeat, in seconds since 1970.
using Marks = std::map<double, Mark>;

std::map<uint32_t, Marks> MarksOf(const std::string& metrics) {
  std::map<uint32_t, Marks> marks;
  std::istringstream lines(metrics);
  for (std::string line; std::getline(lines, line);) {
    const auto event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    // The last line may be incomplete.
    if (!event.is_object() || event.value("event", "") != "step") continue;
    Mark& mark = marks[event.value("rank", 0u)][event.value("time", 0.0)];
    mark.clock = std::max(mark.clock, event.value("clock", uint64_t{0}));
    mark.examples += event.value("examples", uint64_t{0});
    mark.exchange += event.value("exchange_seconds", 0.0);
    mark.wait += event.value("wait_seconds", 0.0);
  }
  return marks;
}

absl::StatusOr<std::vector<std::unique_ptr<Process>>> StartWorkers(const RehearsalOptions& options,
                                                                   const RealServers& servers) {
  std::vector<std::unique_ptr<Process>> workers;
  for (uint32_t rank = 0; rank < options.job.workers().count(); ++rank) {
    ProcessSpec spec;
    spec.name = absl::StrCat("worker ", rank);
    spec.arguments = {options.program_folder + "/leeway-worker",
                      "--coordinator",
                      servers.coordinator(),
                      "--rank",
                      std::to_string(rank),
                      "--data",
                      options.data_dir,
                      "--absolute-paths"};
    spec.output_file = absl::StrCat(servers.folder(), "/worker-", rank, ".log");
    ASSIGN_OR_RETURN(std::unique_ptr<Process> worker, Process::Start(spec));
    workers.push_back(std::move(worker));
  }
  return workers;
}

// Waits a little. Returns an error if one of the processes ends meanwhile.
absl::Status WaitWhileAllRun(const std::vector<Process*>& processes, const std::string& folder) {
  std::vector<pollfd> waits;
  for (const Process* process : processes) {
    waits.push_back({.fd = process->exit_fd(), .events = POLLIN, .revents = 0});
  }
  if (poll(waits.data(), waits.size(), kLookEveryMs) <= 0) return absl::OkStatus();
  for (size_t i = 0; i < waits.size(); ++i) {
    if (waits[i].revents == 0) continue;
    std::string file = processes[i]->name();
    file[file.find(' ')] = '-';
    const auto log = ReadFile(absl::StrCat(folder, "/", file, ".log"), kLogBytesMax);
    return absl::UnavailableError(absl::StrCat("the rehearsal's ", processes[i]->name(),
                                               " has ended: ", log.ok() ? *log : "without a log"));
  }
  return absl::OkStatus();
}

}  // namespace

Rehearsal ReadRehearsal(const std::string& metrics, uint32_t workers, double seconds) {
  Rehearsal result;
  const std::map<uint32_t, Marks> all = MarksOf(metrics);
  if (all.size() < workers) return result;
  double rates = 0;
  double examples_per_second = 0;
  double exchange = 0, wait = 0;
  uint64_t clocks = 0;
  for (const auto& [rank, marks] : all) {
    const auto [began, first] = *marks.begin();
    const auto [ended, last] = *marks.rbegin();
    const uint64_t done = last.clock - first.clock;
    if (ended - began < seconds || done < kClocksAtLeast) return result;
    rates += static_cast<double>(done) / (ended - began);
    clocks += done;
    uint64_t examples = 0;
    for (const auto& [time, mark] : marks) {
      examples += mark.examples;
      exchange += mark.exchange;
      wait += mark.wait;
    }
    examples_per_second += static_cast<double>(examples - first.examples) / (ended - began);
  }
  result.examples_per_second = examples_per_second;
  if (exchange > 0) result.hidden_share = std::clamp(1 - wait / exchange, 0.0, 1.0);
  result.clock_seconds = static_cast<double>(all.size()) / rates;
  result.clocks = clocks;
  return result;
}

absl::StatusOr<Rehearsal> Rehearse(const RehearsalOptions& options) {
  const v1::TrainingJob job =
      EndlessJob(options.job, options.job.servers().count(), options.job.workers().count());
  ASSIGN_OR_RETURN(const auto servers,
                   RealServers::Start(options.program_folder, ToYaml(job), job.servers().count()));
  ASSIGN_OR_RETURN(const auto workers, StartWorkers(options, *servers));
  std::vector<Process*> processes;
  for (const auto& server : servers->processes()) processes.push_back(server.get());
  for (const auto& worker : workers) processes.push_back(worker.get());
  const Time limit = std::chrono::steady_clock::now() + FromSeconds(options.seconds) + kLimit;
  while (std::chrono::steady_clock::now() < limit) {
    RETURN_IF_ERROR(WaitWhileAllRun(processes, servers->folder()));
    const auto metrics = ReadFile(servers->run_folder() + "/metrics.jsonl", kMetricsBytesMax);
    if (absl::IsNotFound(metrics.status())) continue;
    RETURN_IF_ERROR(metrics.status());
    const Rehearsal so_far = ReadRehearsal(*metrics, job.workers().count(), options.seconds);
    if (so_far.clocks > 0) return so_far;
  }
  return absl::DeadlineExceededError(
      "the rehearsal's workers have not completed enough clocks in a minute");
}

}  // namespace leeway
