#include "bench/exchange_job.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/exchange_worker.h"
#include "common/process/process_usage.h"
#include "common/status.h"

namespace leeway {
namespace {

// Sends the request to all processes, then waits for all their answers.
absl::StatusOr<std::vector<Json>> CallAll(const std::vector<BenchProcess*>& processes,
                                          const Json& request, double seconds) {
  for (BenchProcess* process : processes) RETURN_IF_ERROR(process->Send(request));
  std::vector<Json> answers;
  for (BenchProcess* process : processes) {
    ASSIGN_OR_RETURN(Json answer, process->Receive(AnswerWithin(seconds)));
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

double CpuSecondsOf(const std::vector<std::unique_ptr<BenchProcess>>& processes) {
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

v1::ModelSchema VectorSchema(uint64_t parameters) {
  v1::ModelSchema schema;
  schema.set_total(parameters);
  schema.set_trained(parameters);
  v1::TensorSpec& tensor = *schema.add_tensors();
  tensor.set_name("bench/weight");
  tensor.add_shape(parameters);
  return schema;
}

absl::StatusOr<std::unique_ptr<ExchangeJob>> ExchangeJob::Start(const ExchangeJobSpec& spec) {
  std::unique_ptr<ExchangeJob> job(new ExchangeJob);
  ASSIGN_OR_RETURN(job->servers_, RealServers::Start(spec.program_folder, spec.yaml, spec.servers));
  job->idle_bytes_ = job->servers_->MemoryBytes();
  RETURN_IF_ERROR(job->StartWorkers(spec));
  return job;
}

absl::Status ExchangeJob::StartWorkers(const ExchangeJobSpec& spec) {
  for (uint32_t rank = 0; rank < spec.workers; ++rank) {
    const ExchangeWorkerOptions worker{
        .coordinator = servers_->coordinator(), .rank = rank, .schema = spec.schema};
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("worker ", rank),
                                                       [&] { return ExchangeWorker(worker); }));
    workers_.push_back(std::move(process));
  }
  return CallAll(Pointers(workers_), {{"open", true}}, 0).status();
}

absl::StatusOr<ExchangeRound> ExchangeJob::Run(uint64_t clocks, double seconds) {
  const double before = servers_->CpuSeconds() + CpuSecondsOf(workers_);
  ASSIGN_OR_RETURN(const auto answers, CallAll(Pointers(workers_), {{"clocks", clocks}}, seconds));
  ExchangeRound round = RoundOf(answers);
  round.cpu_seconds = servers_->CpuSeconds() + CpuSecondsOf(workers_) - before;
  block_bytes_ = answers[0].value("block_bytes", uint64_t{0});
  return round;
}

ExchangeJob::ServerMemory ExchangeJob::server_memory() const {
  ServerMemory memory;
  const std::vector<uint64_t> peaks = servers_->PeakBytes();
  for (size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i] <= memory.peak_bytes) continue;
    memory = {.peak_bytes = peaks[i],
              .peers_bytes = PeersMemoryBytes(servers_->processes()[i]->pid()),
              .idle_bytes = idle_bytes_[i]};
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<RawExchangeGroup>> RawExchangeGroup::Start(
    const RawExchangePlan& plan, Wire wire, uint32_t workers) {
  std::vector<std::vector<RawSocket>> of_server(plan.servers);
  std::vector<std::vector<RawSocket>> of_worker(workers);
  for (auto& workers_end : of_worker) {
    for (auto& servers_end : of_server) {
      ASSIGN_OR_RETURN(auto ends,
                       wire == Wire::kUnix ? RawSocket::UnixPair() : RawSocket::TcpPair());
      workers_end.push_back(std::move(ends.first));
      servers_end.push_back(std::move(ends.second));
    }
  }
  // Runs in a child: returns the child's own ends, and closes the ends of all other processes. If
  // the child kept these other ends open, it would not notice that their processes have ended.
  const auto take = [&](std::vector<RawSocket>& of_child) {
    std::vector<RawSocket> own = std::move(of_child);
    of_server.clear();
    of_worker.clear();
    return own;
  };
  std::unique_ptr<RawExchangeGroup> group(new RawExchangeGroup);
  for (uint32_t server = 0; server < plan.servers; ++server) {
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("raw server ", server), [&] {
                       return RawExchangeServer(take(of_server[server]), plan, server);
                     }));
    group->servers_.push_back(std::move(process));
  }
  for (uint32_t rank = 0; rank < workers; ++rank) {
    ASSIGN_OR_RETURN(auto process, BenchProcess::Start(absl::StrCat("raw worker ", rank), [&] {
                       return RawExchangeWorker(take(of_worker[rank]), plan);
                     }));
    group->workers_.push_back(std::move(process));
  }
  return group;
}

absl::StatusOr<ExchangeRound> RawExchangeGroup::Run(uint64_t clocks, double seconds) {
  const double before = CpuSecondsOf(servers_) + CpuSecondsOf(workers_);
  std::vector<BenchProcess*> all = Pointers(workers_);
  for (const auto& server : servers_) all.push_back(server.get());
  ASSIGN_OR_RETURN(auto answers, CallAll(all, {{"clocks", clocks}}, seconds));
  answers.resize(workers_.size());
  ExchangeRound round = RoundOf(answers);
  round.cpu_seconds = CpuSecondsOf(servers_) + CpuSecondsOf(workers_) - before;
  return round;
}

}  // namespace leeway
