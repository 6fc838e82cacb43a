#include "tests/bench/growth/growth_job.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <poll.h>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "deploy/bench/process_usage.h"

namespace leeway {
namespace {

constexpr int kReadyWithinMs = 60'000;

std::string JobYaml(const GrowthJobOptions& options) {
  const std::string staleness = options.mode == "bounded" ? ", staleness: 2" : "";
  return absl::StrCat(
      R"(apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: growth}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
data: {train: {type: generator, examples: 2, shape: [1]}, batch_size: 1}
exchange: {type: gradient}
update: {type: sgd, learning_rate: 0.000001}
stop: {clocks: 1000000}
limits: {start_seconds: 600, lease_seconds: 60}
)",
      "consistency: {mode: ", options.mode, staleness, "}\nservers: {count: ", options.servers,
      ", block_bytes: ", options.block_bytes, "}\nworkers: {count: ", options.workers, "}\n");
}

absl::StatusOr<std::string> WaitUntilReady(Process& server) {
  while (true) {
    pollfd wait{.fd = server.ready_fd(), .events = POLLIN, .revents = 0};
    const int ready = poll(&wait, 1, kReadyWithinMs);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return absl::DeadlineExceededError(absl::StrCat(server.name(), " does not start"));
    }
    bool complete = false;
    ASSIGN_OR_RETURN(std::string line, server.ReadReady(&complete));
    if (complete) return line;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrowthJob>> GrowthJob::Start(const GrowthJobOptions& options) {
  std::unique_ptr<GrowthJob> job(new GrowthJob);
  job->folder_ = "/tmp/leeway-growth-XXXXXX";
  if (mkdtemp(job->folder_.data()) == nullptr) {
    return absl::InternalError(absl::StrCat("making ", job->folder_, ": ", strerror(errno)));
  }
  RETURN_IF_ERROR(WriteFileAtomically(job->folder_ + "/job.yaml", JobYaml(options)));
  for (uint32_t index = 0; index < options.servers; ++index) {
    RETURN_IF_ERROR(job->StartServer(options, index));
  }
  return job;
}

absl::Status GrowthJob::StartServer(const GrowthJobOptions& options, uint32_t index) {
  ProcessSpec spec;
  spec.name = absl::StrCat("server ", index);
  spec.arguments = {options.program_folder + "/leeway-server", "--index", std::to_string(index)};
  const std::vector<std::string> more =
      index == 0
          ? std::vector<std::string>{"--job", folder_ + "/job.yaml", "--run-dir", folder_ + "/run"}
          : std::vector<std::string>{"--coordinator", coordinator_};
  spec.arguments.insert(spec.arguments.end(), more.begin(), more.end());
  spec.output_file = absl::StrCat(folder_, "/server-", index, ".log");
  spec.announces_ready = true;
  ASSIGN_OR_RETURN(std::unique_ptr<Process> server, Process::Start(spec));
  auto address = WaitUntilReady(*server);
  if (!address.ok()) {
    const auto log = ReadFile(spec.output_file, 1 << 20);
    return Annotate(address.status(), log.ok() ? *log : spec.name);
  }
  if (index == 0) coordinator_ = *address;
  servers_.push_back(std::move(server));
  return absl::OkStatus();
}

GrowthJob::~GrowthJob() {
  // Killed: an orderly end would write a checkpoint that nobody wants.
  servers_.clear();
  RemoveTree(folder_).IgnoreError();
}

std::vector<uint64_t> GrowthJob::MemoryBytes() const {
  std::vector<uint64_t> bytes;
  for (const auto& server : servers_) bytes.push_back(leeway::MemoryBytes(server->pid()));
  return bytes;
}

std::vector<uint64_t> GrowthJob::PeakBytes() const {
  std::vector<uint64_t> bytes;
  for (const auto& server : servers_) bytes.push_back(PeakMemoryBytes(server->pid()));
  return bytes;
}

double GrowthJob::CpuSeconds() const {
  double seconds = 0;
  for (const auto& server : servers_) seconds += ProcessCpuSeconds(server->pid());
  return seconds;
}

}  // namespace leeway
