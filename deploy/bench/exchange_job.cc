#include "deploy/bench/exchange_job.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <poll.h>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "deploy/bench/exchange_worker.h"
#include "deploy/bench/process_usage.h"
#include "deploy/bench/raw_exchange.h"

namespace leeway {
namespace {

constexpr int kReadyWithinMs = 60'000;

absl::StatusOr<std::string> MakeFolder() {
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  std::string path = ((error ? "/tmp" : temporary) / "leeway-bench-XXXXXX").string();
  if (mkdtemp(path.data()) != nullptr) return path;
  return absl::InternalError(absl::StrCat("making ", path, ": ", strerror(errno)));
}

std::string UpdateYaml(const std::string& update) {
  if (update == "adam") return "{type: adam, learning_rate: 0.000001}";
  const char* momentum = update == "momentum" ? ", momentum: 0.9" : "";
  return absl::StrCat("{type: sgd, learning_rate: 0.000001", momentum, "}");
}

// The address that a server announces.
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

// Tells all processes to begin, then waits for all.
absl::StatusOr<std::vector<Json>> CallAll(const std::vector<BenchProcess*>& processes,
                                          const Json& request) {
  for (BenchProcess* process : processes) RETURN_IF_ERROR(process->Send(request));
  std::vector<Json> answers;
  for (BenchProcess* process : processes) {
    ASSIGN_OR_RETURN(Json answer, process->Receive());
    answers.push_back(std::move(answer));
  }
  return answers;
}

ExchangeRound RoundOf(const std::vector<Json>& answers) {
  ExchangeRound round;
  for (const Json& answer : answers) {
    const auto steps = answer.value("seconds", std::vector<double>());
    double sum = 0;
    for (const double step : steps) sum += step;
    round.seconds = std::max(round.seconds, sum);
    round.step_seconds.insert(round.step_seconds.end(), steps.begin(), steps.end());
  }
  return round;
}

template <typename T>
double CpuSecondsOf(const std::vector<std::unique_ptr<T>>& processes) {
  double seconds = 0;
  for (const auto& process : processes) seconds += ProcessCpuSeconds(process->pid());
  return seconds;
}

std::vector<BenchProcess*> Pointers(const std::vector<std::unique_ptr<BenchProcess>>& processes) {
  std::vector<BenchProcess*> pointers;
  for (const auto& process : processes) pointers.push_back(process.get());
  return pointers;
}

}  // namespace

std::string ExchangeJobYaml(const ExchangeBenchOptions& options, Wire wire) {
  std::string yaml = absl::StrCat(R"(apiVersion: leeway/v1
kind: TrainingJob
metadata: {name: bench-exchange}
model: {layers: [{dense: {units: 2}}], loss: softmax_cross_entropy}
data: {train: {type: generator, examples: 2, shape: [1]}, batch_size: 1}
exchange: {type: gradient}
consistency: {mode: sync}
stop: {clocks: 1000000000}
)");
  const std::string blocks =
      options.block_bytes > 0 ? absl::StrCat(", block_bytes: ", options.block_bytes) : "";
  absl::StrAppend(
      &yaml, "update: ", UpdateYaml(options.update), "\nservers: {count: ", options.servers, blocks,
      "}\nworkers: {count: ", options.workers, "}\ntransport: {type: ", NameOf(wire), "}\n");
  if (options.codec != "none") {
    absl::StrAppend(&yaml, "compression: {contributions: {type: ", options.codec,
                    "}, weights: {type: ", options.codec, "}}\n");
  }
  return yaml;
}

absl::StatusOr<std::unique_ptr<ExchangeJob>> ExchangeJob::Start(const ExchangeBenchOptions& options,
                                                                Wire wire, uint64_t parameters) {
  std::unique_ptr<ExchangeJob> job(new ExchangeJob);
  ASSIGN_OR_RETURN(job->folder_, MakeFolder());
  RETURN_IF_ERROR(job->StartServers(options, ExchangeJobYaml(options, wire)));
  RETURN_IF_ERROR(job->StartWorkers(options, parameters));
  return job;
}

ExchangeJob::~ExchangeJob() {
  workers_.clear();
  // Killed: an orderly end would write a checkpoint that nobody wants.
  servers_.clear();
  if (!folder_.empty()) RemoveTree(folder_).IgnoreError();
}

absl::Status ExchangeJob::StartServers(const ExchangeBenchOptions& options,
                                       const std::string& yaml) {
  const std::string job_file = folder_ + "/bench.yaml";
  RETURN_IF_ERROR(WriteFileAtomically(job_file, yaml));
  for (uint32_t index = 0; index < options.servers; ++index) {
    ProcessSpec spec;
    spec.name = absl::StrCat("server ", index);
    spec.arguments = {options.program_folder + "/leeway-server", "--index", std::to_string(index)};
    const std::vector<std::string> more =
        index == 0 ? std::vector<std::string>{"--job", job_file, "--run-dir", folder_ + "/run"}
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
    idle_bytes_.push_back(MemoryBytes(server->pid()));
    servers_.push_back(std::move(server));
  }
  return absl::OkStatus();
}

absl::Status ExchangeJob::StartWorkers(const ExchangeBenchOptions& options, uint64_t parameters) {
  for (uint32_t rank = 0; rank < options.workers; ++rank) {
    const ExchangeWorkerOptions worker{
        .coordinator = coordinator_, .rank = rank, .parameters = parameters};
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("worker ", rank),
                                                       [&] { return ExchangeWorker(worker); }));
    workers_.push_back(std::move(process));
  }
  return CallAll(Pointers(workers_), {{"open", true}}).status();
}

absl::StatusOr<ExchangeRound> ExchangeJob::Run(uint64_t clocks) {
  const double before = CpuSecondsOf(servers_) + CpuSecondsOf(workers_);
  ASSIGN_OR_RETURN(const auto answers, CallAll(Pointers(workers_), {{"clocks", clocks}}));
  ExchangeRound round = RoundOf(answers);
  round.cpu_seconds = CpuSecondsOf(servers_) + CpuSecondsOf(workers_) - before;
  block_bytes_ = answers[0].value("block_bytes", uint64_t{0});
  return round;
}

ExchangeJob::ServerMemory ExchangeJob::server_memory() const {
  ServerMemory memory;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const uint64_t peak = PeakMemoryBytes(servers_[i]->pid());
    if (peak <= memory.peak_bytes) continue;
    memory = {.peak_bytes = peak,
              .peers_bytes = PeersMemoryBytes(servers_[i]->pid()),
              .idle_bytes = idle_bytes_[i]};
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<RawExchangeGroup>> RawExchangeGroup::Start(
    const ExchangeBenchOptions& options, Wire wire, uint64_t parameters, uint64_t block_bytes) {
  const RawExchangePlan plan{.total_floats = parameters,
                             .servers = options.servers,
                             .block_floats = block_bytes / sizeof(float)};
  std::vector<std::vector<RawSocket>> of_server(options.servers);
  std::vector<std::vector<RawSocket>> of_worker(options.workers);
  for (auto& workers_end : of_worker) {
    for (auto& servers_end : of_server) {
      ASSIGN_OR_RETURN(auto ends,
                       wire == Wire::kUnix ? RawSocket::UnixPair() : RawSocket::TcpPair());
      workers_end.push_back(std::move(ends.first));
      servers_end.push_back(std::move(ends.second));
    }
  }
  std::unique_ptr<RawExchangeGroup> group(new RawExchangeGroup);
  for (uint32_t server = 0; server < options.servers; ++server) {
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("raw server ", server), [&] {
                       return RawExchangeServer(std::move(of_server[server]), plan, server);
                     }));
    group->servers_.push_back(std::move(process));
  }
  for (uint32_t rank = 0; rank < options.workers; ++rank) {
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("raw worker ", rank), [&] {
                       return RawExchangeWorker(std::move(of_worker[rank]), plan);
                     }));
    group->workers_.push_back(std::move(process));
  }
  return group;
}

absl::StatusOr<ExchangeRound> RawExchangeGroup::Run(uint64_t clocks) {
  const double before = CpuSecondsOf(servers_) + CpuSecondsOf(workers_);
  std::vector<BenchProcess*> all = Pointers(workers_);
  for (const auto& server : servers_) all.push_back(server.get());
  ASSIGN_OR_RETURN(auto answers, CallAll(all, {{"clocks", clocks}}));
  answers.resize(workers_.size());
  ExchangeRound round = RoundOf(answers);
  round.cpu_seconds = CpuSecondsOf(servers_) + CpuSecondsOf(workers_) - before;
  return round;
}

}  // namespace leeway
