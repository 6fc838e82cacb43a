// Many seeded schedules of a sync job. Messages are repeated, delayed and reordered, and answers
// are lost. Workers are killed and replaced, whereupon the job goes back to its newest cut. A stop
// comes at any moment. In each schedule no two lives share an incarnation, all workers stop at one
// clock and none passes it, and a manifest has all its parts.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "common/philox.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::schedules {
namespace {

constexpr uint32_t kWorkers = 3;
constexpr uint32_t kServers = 2;
constexpr uint64_t kClocks = 12;
constexpr uint64_t kCutEvery = 3;

// A worker process: what it knows, and the one question whose answer it waits for.
struct Process {
  uint32_t pid = 0;
  uint64_t incarnation = 0;
  uint64_t generation = 0;
  uint64_t clock = 0;
  bool exchanging = false;
  bool stop_requested = false;
  std::optional<uint64_t> stop_at;
  bool asking = false;
  bool left = false;
  bool registered() const { return incarnation > 0; }
  bool done() const { return clock == kClocks || (stop_at && clock >= *stop_at); }
};

class Schedule {
 public:
  explicit Schedule(uint64_t seed)
      : draws_(seed, RandomPurpose::kGenerate),
        job_({.workers = kWorkers,
              .servers = kServers,
              .clocks = kClocks,
              .cut_every = kCutEvery,
              .elastic = true}) {
    for (uint32_t rank = 0; rank < kWorkers; ++rank) processes_[rank].pid = ++pids_;
    stop_step_ = draws_.Below(700);
  }

  // Runs until the job is over.
  void Run() {
    for (uint64_t step = 0; !job_.core.over(); ++step) {
      if (step >= 100'000) UNSCOPED_INFO(job_.core.Status(job_.now).DebugString());
      REQUIRE(step < 100'000);
      if (step == stop_step_) job_.core.StopJob("the schedule says so", job_.now);
      chaos_ = step < 1500;
      Step();
      Execute();
    }
    INFO(job_.core.Status(job_.now).message());
    CHECK((job_.core.state() == v1::JOB_STOPPED || job_.core.state() == v1::JOB_FINISHED));
  }
  uint64_t manifests() const { return manifests_; }
  uint64_t went_back() const { return went_back_; }
  bool stopped() const { return job_.core.state() == v1::JOB_STOPPED; }

 private:
  void Step() {
    job_.now += std::chrono::milliseconds(20);
    if (Chance(0.3)) job_.core.Tick(job_.now);
    for (uint32_t i = 0; i < kServers; ++i) job_.ServerBeat(i).IgnoreError();
    const auto rank = static_cast<uint32_t>(draws_.Below(kWorkers));
    if (chaos_ && Chance(0.01)) return Kill(rank);
    // In the end pending messages are delivered faster than new ones are sent.
    if (Chance(chaos_ ? 0.5 : 0.8)) return Deliver();
    Work(rank);
  }

  bool Chance(double probability) { return draws_.Uniform() < probability; }

  void Kill(uint32_t rank) {
    if (processes_[rank].left) return;
    processes_[rank] = Process();
    processes_[rank].pid = ++pids_;
  }

  // Delivers any pending message, in any order; some stay for another time.
  void Deliver() {
    if (messages_.empty()) return;
    const size_t index = draws_.Below(messages_.size());
    const std::function<void(bool)> message = messages_[index];
    if (!chaos_ || Chance(0.7)) messages_.erase(messages_.begin() + static_cast<long>(index));
    message(chaos_ && Chance(0.15));
  }

  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename T>
  static const absl::Status& StatusOf(const absl::StatusOr<T>& answer) {
    return answer.status();
  }

  // Sends `ask`. `take` gets the answer, unless the answer is lost or the process is gone.
  template <typename Ask, typename Take>
  void Send(uint32_t rank, Ask ask, Take take) {
    messages_.push_back([this, rank, pid = processes_[rank].pid, ask, take](bool lost) {
      auto answer = ask();
      Process& process = processes_[rank];
      if (lost || process.pid != pid) return;
      // The late first registration of a dead process has won the rank: this process is started
      // again.
      if (absl::IsAborted(StatusOf(answer))) return Kill(rank);
      if (absl::StrContains(StatusOf(answer).message(), "register again")) {
        process = Process();
        process.pid = pid;
        return;
      }
      take(process, std::move(answer));
    });
  }

  void Work(uint32_t rank) {
    Process& process = processes_[rank];
    if (process.left) return;
    if (!process.registered()) return Register(rank);
    Beat(rank);
    // The servers refuse this contribution.
    if (process.generation != generation_) return;
    // The exchange is broken off: it was begun before the stop was known.
    if (process.done()) process.exchanging = false;
    if (process.exchanging) {
      const uint64_t slowest = *std::min_element(contributed_.begin(), contributed_.end());
      if (slowest <= process.clock) return;
      process.exchanging = false;
      ++process.clock;
      Completed(rank);
    }
    if (process.done()) return Leave(rank);
    if (process.stop_requested && !process.stop_at) return AskStop(rank);
    // A new life may have to wait for the other workers' part of its predecessor's clock.
    if (*std::min_element(contributed_.begin(), contributed_.end()) < process.clock) return;
    process.exchanging = true;
    contributed_[rank] = std::max(contributed_[rank], process.clock + 1);
  }

  void Completed(uint32_t rank) {
    const Process& process = processes_[rank];
    if (fixed_stop_) CHECK(process.clock <= *fixed_stop_);
    reached_ = std::max(reached_, process.clock);
    SaveState(rank);
    if (process.clock % kCutEvery != 0) return;
    for (uint32_t server = 0; server < kServers; ++server) {
      if (!Chance(0.5)) continue;
      messages_.push_back([this, server, clock = process.clock, generation = generation_](bool) {
        job_.generation = generation;
        const absl::Status status = job_.Shard(server, clock);
        REQUIRE((status.ok() || absl::StrContains(status.message(), "register again")));
      });
    }
  }

  void SaveState(uint32_t rank) {
    const Process& process = processes_[rank];
    const v1::SavedShard file = TestFile("w" + std::to_string(rank));
    messages_.push_back([=, this](bool) {
      job_.core
          .WorkerStateSaved({kJob, process.generation, rank, process.incarnation, process.clock},
                            file, job_.now)
          .IgnoreError();
    });
    // The report of the last clock is known to have arrived before the worker leaves.
    if (process.done()) messages_.back()(false);
  }

  void Register(uint32_t rank) {
    const uint32_t pid = processes_[rank].pid;
    Send(
        rank, [=, this] { return job_.core.RegisterWorker(WorkerRequest(rank, pid), job_.now); },
        [=, this](Process& process, absl::StatusOr<v1::RegisterWorkerReply> reply) {
          if (!reply.ok()) {
            // The job ended before this life began.
            if (absl::IsFailedPrecondition(reply.status())) process.left = true;
            return;
          }
          CHECK(lives_.try_emplace({rank, reply->incarnation()}, pid).first->second == pid);
          if (process.registered()) return;
          process.incarnation = reply->incarnation();
          process.generation = reply->generation();
          process.clock = contributed_[rank];
          if (reply->has_stop_at()) TakeStop(process, reply->stop_at());
        });
  }

  void Beat(uint32_t rank) {
    v1::HeartbeatRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(processes_[rank].incarnation);
    request.set_clock(processes_[rank].clock);
    request.set_generation(processes_[rank].generation);
    Send(
        rank, [=, this] { return job_.core.Heartbeat(request, job_.now); },
        [this](Process& process, absl::StatusOr<v1::HeartbeatReply> reply) {
          if (!reply.ok()) return;
          process.stop_requested |= reply->stop_requested();
          if (reply->has_stop_at()) TakeStop(process, reply->stop_at());
        });
  }

  void AskStop(uint32_t rank) {
    v1::StopAtRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(processes_[rank].incarnation);
    request.set_clock(processes_[rank].clock);
    request.set_generation(processes_[rank].generation);
    Send(
        rank, [=, this] { return job_.core.StopAt(request, job_.now); },
        [this](Process& process, absl::StatusOr<v1::StopAtReply> reply) {
          if (reply.ok()) TakeStop(process, reply->stop_at());
        });
  }

  void TakeStop(Process& process, uint64_t stop_at) {
    if (!fixed_stop_) fixed_stop_ = stop_at;
    CHECK(*fixed_stop_ == stop_at);
    CHECK(reached_ <= stop_at);
    process.stop_at = stop_at;
  }

  void Leave(uint32_t rank) {
    SaveState(rank);
    v1::LeaveRequest request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(processes_[rank].incarnation);
    request.set_clock(processes_[rank].clock);
    request.set_reason(processes_[rank].clock == kClocks ? v1::LEAVE_FINISHED : v1::LEAVE_STOPPED);
    request.set_generation(processes_[rank].generation);
    request.set_waits(true);
    Send(
        rank, [=, this] { return job_.core.Leave(request, job_.now); },
        [](Process& process, const absl::StatusOr<v1::LeaveReply>& reply) {
          process.left |= reply.ok() && reply->sealed();
        });
  }

  // Carries the core's commands out, sometimes later.
  void Execute() {
    for (uint32_t i = 0; i < kServers; ++i) {
      if (!registered_servers_.count(i) && Chance(0.2)) {
        // The registration is refused if the stop came first.
        CHECK((job_.Server(i).ok() || job_.core.state() >= v1::JOB_STOPPING));
        registered_servers_.insert(i);
      }
    }
    for (const ConfigureServer& command : job_.Take<ConfigureServer>()) {
      if (command.request.generation() > generation_) GoBack(command.request);
      messages_.push_back([=, this](bool) {
        job_.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()},
                           job_.now);
      });
    }
    for (const SaveAll& command : job_.Take<SaveAll>()) {
      // A killed worker may have sent the contribution of one more clock, which never completes.
      CHECK(*std::min_element(contributed_.begin(), contributed_.end()) == command.clock);
      for (uint32_t i = 0; i < kServers; ++i) {
        messages_.push_back([=, this](bool) {
          job_.core.Answered(
              SaveDone{i, command.round, command.clock, TestFile("shard-" + std::to_string(i))},
              job_.now);
        });
      }
    }
    for (const WriteManifest& command : job_.Take<WriteManifest>()) Check(command);
    job_.Seal();
    if (!job_.Take<ShutdownServers>().empty()) {
      for (uint32_t i = 0; i < kServers; ++i) job_.core.Answered(ShutdownDone{i}, job_.now);
    }
    job_.Take<Event>();
  }

  // The servers load the newest cut, and refuse messages of the previous generation.
  void GoBack(const v1::ConfigureRequest& request) {
    generation_ = request.generation();
    CHECK(request.checkpoint() ==
          (newest_ == 0 ? "" : absl::StrFormat("/run/checkpoints/clock-%09d", newest_)));
    std::fill(contributed_.begin(), contributed_.end(), newest_);
    reached_ = newest_;
    ++went_back_;
  }

  void Check(const WriteManifest& command) {
    ++manifests_;
    const v1::CheckpointManifest& manifest = command.manifest;
    CHECK(manifest.shards_size() == static_cast<int>(kServers));
    CHECK(manifest.worker_states_size() == static_cast<int>(kWorkers));
    for (uint32_t i = 0; i < kServers; ++i) {
      CHECK(manifest.shards(static_cast<int>(i)).file() == "shard-" + std::to_string(i));
    }
    CHECK(written_.insert(manifest.clock()).second);
    messages_.push_back([this, clock = manifest.clock()](bool) {
      newest_ = std::max(newest_, clock);
      job_.core.Answered(ManifestWritten{clock, absl::OkStatus()}, job_.now);
    });
  }

  RandomStream draws_;
  Scenario job_;
  bool chaos_ = true;
  uint64_t stop_step_ = 0;
  uint32_t pids_ = 0;
  std::map<uint32_t, Process> processes_;
  std::vector<uint64_t> contributed_ = std::vector<uint64_t>(kWorkers);
  std::vector<std::function<void(bool)>> messages_;
  std::set<uint32_t> registered_servers_;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> lives_;
  std::optional<uint64_t> fixed_stop_;
  uint64_t reached_ = 0;
  std::set<uint64_t> written_;
  uint64_t manifests_ = 0;
  uint64_t generation_ = 0;
  uint64_t newest_ = 0;
  uint64_t went_back_ = 0;
};

TEST_CASE("no schedule makes two lives alike, two stops, or half a checkpoint") {
  uint64_t manifests = 0;
  uint64_t went_back = 0;
  int stopped = 0;
  constexpr int kSchedules = 1000;
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    INFO("seed " << seed);
    Schedule schedule(seed);
    schedule.Run();
    manifests += schedule.manifests();
    went_back += schedule.went_back();
    stopped += schedule.stopped() ? 1 : 0;
  }
  // The schedules reach the situations that they are for.
  CHECK(manifests > kSchedules);
  CHECK(went_back > kSchedules / 2);
  CHECK(stopped > kSchedules / 4);
  CHECK(stopped < kSchedules);
}

}  // namespace
}  // namespace leeway::schedules
