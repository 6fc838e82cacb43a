// Reads bytes as a sequence of messages to the coordinator's core: true ones, stale ones and lies.
// A service carries out what it is told, late, twice or not at all.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/core/coordinator_core.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::coordinator_core {
namespace {

constexpr size_t kInputsMax = 120, kCommandsMax = 64;
constexpr uint64_t kBatches = 8;  // batches of leased data in a pass

JobShape ShapeOf(FuzzInput& input) {
  JobShape shape;
  shape.workers = 1 + input.Below(3);
  shape.servers = 1 + input.Below(3);
  shape.mode = static_cast<v1::ConsistencyMode>(input.Below(3));
  shape.clocks = 1 + input.Below(8);
  shape.cut_every = input.Below(4);
  return shape;
}

// Makes a checkpoint's progress of leased data with arbitrary values.
v1::CheckpointManifest ManifestOf(FuzzInput& input) {
  v1::CheckpointManifest manifest;
  manifest.set_clock(1 + input.Below(8));
  *manifest.mutable_schema() = TestSchema();
  if (input.Below(8) == 0) return manifest;
  v1::DataProgress& data = *manifest.mutable_data();
  data.set_batches_per_epoch(input.Below(8) == 0 ? input.Number() : kBatches);
  data.set_next(input.Number());
  for (uint32_t ranges = input.Below(4); ranges > 0; --ranges) {
    v1::DataRange& range = *data.add_open();
    range.set_first(input.Number());
    range.set_count(input.Number());
  }
  return manifest;
}

CoordinatorOptions OptionsOf(FuzzInput& input, JobShape& shape) {
  const uint8_t kinds = input.Byte();
  shape.elastic = kinds & 1;
  CoordinatorOptions options = TestOptions(shape);
  // Servers come and go.
  if (kinds & 16) {
    options.job.mutable_servers()->set_shards(shape.servers + 2);
    if (shape.servers > 1 && (kinds & 32)) options.job.mutable_servers()->set_replicas(2);
  }
  // The coordinator says which contributions make a sync clock.
  if (kinds & 64) {
    options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
    if (shape.mode == v1::CONSISTENCY_MODE_SYNC && shape.workers > 1 && (kinds & 128)) {
      options.job.mutable_consistency()->set_backup_workers(1);
    }
  }
  if ((kinds & 2) == 0) return options;
  options.job.mutable_data()->set_assignment(v1::ASSIGNMENT_LEASED);
  options.job.mutable_workers()->set_on_worker_loss(v1::WORKER_LOSS_CONTINUE);
  if (kinds & 4) options.job.mutable_stop()->set_epochs(2);
  if (kinds & 8) options.resumed = {ManifestOf(input), "/run/checkpoints/clock-1"};
  return options;
}

class World {
 public:
  explicit World(FuzzInput& input)
      : input_(input),
        shape_(ShapeOf(input)),
        options_(OptionsOf(input, shape_)),
        leased_(options_.job.data().assignment() == v1::ASSIGNMENT_LEASED),
        core_(options_, now_),
        incarnations_(shape_.workers) {}

  void Run() {
    // Starting takes many bytes of input; half of the inputs need not have them.
    if (input_.Flag()) Start();
    for (size_t i = 0; i < kInputsMax && !input_.empty(); ++i) {
      Step();
      Obey();
      if (i % 8 == 0) Look();
    }
    Look();
  }

 private:
  void Start() {
    for (uint32_t i = 0; i < shape_.servers; ++i) RegisterServer(i, 1);
    for (uint32_t i = 0; i < shape_.workers; ++i) RegisterWorker(i, 10 + i);
    // The commands to servers, and then the record that the job has begun.
    for (int round = 0; round < 2; ++round) {
      Obey();
      for (const Command& command : std::exchange(commands_, {})) AnswerTo(command, true);
    }
    for (uint32_t i = 0; i < shape_.workers; ++i) RegisterWorker(i, 10 + i);
    Look();
  }

  void Step() {
    switch (input_.Below(16)) {
      case 0:
        return RegisterServer(Server(), input_.Below(3));
      case 1:
        return RegisterAny();
      case 2:
        return Beat();
      case 3:
        return StopAt();
      case 4:
        return Leave();
      case 5:
        return StateSaved();
      case 6:
        return ServerBeat();
      case 7:
        return ShardSaved();
      case 8:
        return core_.StopJob("a person says so", now_);
      case 9:
        return Pass();
      case 10:
        return Lie();
      case 11:
        return leased_ ? LeaseData() : AnswerAny();
      case 12:
        return options_.job.servers().shards() > 0 ? Resize() : AnswerAny();
      case 13:
        return Held();
      case 14:
        return Drain();
      default:
        return AnswerAny();
    }
  }

  // ---- senders, mostly true ones
  uint32_t Most() const { return std::max(shape_.servers, options_.job.servers().shards()); }
  uint32_t Server() { return input_.Below(Most() + 1); }
  uint32_t Worker() { return input_.Below(shape_.workers + 1); }
  uint64_t IncarnationOf(uint32_t rank) {
    const uint8_t stale = input_.Byte();
    const uint64_t true_one = rank < shape_.workers ? incarnations_[rank] : 0;
    return stale < 0xe0 ? true_one : true_one + stale % 4 - 2u;
  }
  uint64_t Generation() {
    const uint8_t stale = input_.Byte();
    return stale < 0xe0 ? generation_ : generation_ + stale % 4 - 2u;
  }
  template <typename Request>
  Request From(uint32_t rank) {
    Request request;
    request.set_job(kJob);
    request.set_rank(rank);
    request.set_incarnation(IncarnationOf(rank));
    request.set_generation(Generation());
    request.set_clock(input_.Number());
    return request;
  }

  void PromiseCode(const absl::Status& status) {
    switch (status.code()) {
      case absl::StatusCode::kOk:
      case absl::StatusCode::kAlreadyExists:
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kFailedPrecondition:
      case absl::StatusCode::kAborted:
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kResourceExhausted:
        return;
      default:
        Promise(false, "no such error is promised: " + status.ToString());
    }
  }

  // ---- their messages
  void RegisterServer(uint32_t index, uint64_t nonce) {
    v1::RegisterServerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_index(index);
    request.set_address("server" + std::to_string(index) + ":1");
    request.set_nonce(nonce);
    PromiseCode(core_.RegisterServer(request, now_).status());
  }

  void RegisterAny() {
    const uint32_t rank = Worker();
    const uint32_t pid = 10 + input_.Below(8);
    RegisterWorker(input_.Flag() ? std::optional(rank) : std::nullopt, pid);
  }

  void RegisterWorker(std::optional<uint32_t> rank, uint32_t pid) {
    v1::RegisterWorkerRequest request = WorkerRequest(rank, pid);
    request.set_batches_per_epoch(leased_ ? kBatches : 0);
    const auto reply = core_.RegisterWorker(request, now_);
    PromiseCode(reply.status());
    if (!reply.ok()) return;
    Promise(reply->rank() < shape_.workers, "a worker has a rank of the job");
    Promise(reply->generation() >= generation_, "generations do not fall");
    generation_ = reply->generation();
    incarnations_[reply->rank()] = reply->incarnation();
    const auto [life, first] = lives_.emplace(std::pair(reply->rank(), reply->incarnation()), pid);
    Promise(first || life->second == pid, "no two lives of a rank have one incarnation");
  }

  void Beat() {
    auto request = From<v1::HeartbeatRequest>(Worker());
    const uint8_t metrics = input_.Byte();
    if (metrics & 1) {
      v1::StepMetrics& step = *request.add_steps();
      step.set_clock(request.clock());
      step.set_steps(input_.Number());
      step.set_examples(input_.Number());
      step.set_compute_seconds(metrics / 16.0);
    }
    if (metrics & 2) request.add_evaluations()->set_clock(input_.Number());
    const auto reply = core_.Heartbeat(request, now_);
    PromiseCode(reply.status());
    if (reply.ok() && reply->has_stop_at()) PromiseStop(reply->stop_at());
  }

  void LeaseData() {
    v1::LeaseDataRequest request;
    request.set_job(kJob);
    request.set_rank(Worker());
    request.set_incarnation(IncarnationOf(request.rank()));
    request.set_generation(Generation());
    for (uint32_t ranges = input_.Below(4); ranges > 0; --ranges) {
      v1::DoneRange& range = *request.add_done();
      range.set_first(input_.Number());
      range.set_count(input_.Number());
      range.set_clock(input_.Number());
    }
    request.set_want(input_.Number());
    const auto reply = core_.LeaseData(request, now_);
    PromiseCode(reply.status());
    if (!reply.ok()) return;
    uint64_t end = 0;
    uint64_t held = 0;
    for (const v1::DataRange& range : reply->held()) {
      Promise(range.count() > 0 && (held == 0 || range.first() > end), "ranges rise, apart");
      end = range.first() + range.count();
      held += range.count();
      Promise(end > range.first() && end <= LeaseBook::kBatchMax + held, "no range wraps around");
    }
    Promise(held <= LeaseBook::kStockMax + 2, "nobody holds without bound");
    Promise(!reply->over() || held == 0, "what is held is not done");
    const v1::DataStatus data = core_.Status(now_).data();
    Promise(data.leased() >= held, "what a worker holds is leased");
  }

  void StopAt() {
    const auto reply = core_.StopAt(From<v1::StopAtRequest>(Worker()), now_);
    PromiseCode(reply.status());
    if (reply.ok()) PromiseStop(reply->stop_at());
  }

  // In sync mode all workers stop at one clock. It may fall when a worker is lost or fails, but may
  // not rise before a new generation.
  void PromiseStop(uint64_t clock) {
    if (shape_.mode != v1::CONSISTENCY_MODE_SYNC) return;
    const auto [stop, first] = stops_.emplace(core_.Status(now_).generation(), clock);
    Promise(clock <= stop->second, "the clock at which all stop does not rise");
    stop->second = clock;
  }

  void Leave() {
    auto request = From<v1::LeaveRequest>(Worker());
    request.set_reason(static_cast<v1::LeaveReason>(input_.Below(4)));
    request.set_message("gone");
    request.set_waits(input_.Flag());
    PromiseCode(core_.Leave(request, now_).status());
  }

  void StateSaved() {
    const uint32_t rank = Worker();
    const CoordinatorCore::Sender sender{kJob, Generation(), rank, IncarnationOf(rank),
                                         input_.Number()};
    const absl::Status allowed = core_.CheckWorkerState(sender);
    PromiseCode(allowed);
    if (!allowed.ok()) return;
    PromiseCode(core_.WorkerStateSaved(sender, TestFile("worker-" + std::to_string(rank)), now_));
  }

  void ServerBeat() {
    v1::ServerHeartbeatRequest request;
    request.set_job(kJob);
    request.set_index(Server());
    if (options_.job.servers().shards() > 0) {
      request.set_nonce(input_.Below(3));
      request.set_generation(Generation());
      request.add_synced()->set_shard(input_.Below(8));
      request.mutable_synced(0)->set_since_epoch(input_.Below(32));
    }
    PromiseCode(core_.ServerHeartbeat(request, now_).status());
  }

  void Held() {
    v1::ContributionsHeldRequest request;
    request.set_job(kJob);
    request.set_generation(Generation());
    request.set_index(Server());
    request.set_epoch(input_.Below(8) == 0 ? input_.Number() : UINT64_MAX);
    request.set_clock(input_.Below(8) == 0 ? input_.Number() : sets_.size());
    request.set_again(input_.Flag());
    const uint8_t ranks = input_.Byte();
    for (uint32_t rank = 0; rank <= shape_.workers; ++rank) {
      if (ranks >> (4 + rank) & 1) request.add_refused(rank);
      if ((ranks >> rank & 1) == 0) continue;
      request.add_ranks(rank);
      request.add_held_us(input_.Number());
    }
    PromiseCode(core_.ContributionsHeld(request, now_));
    if (core_.alarm() && input_.Flag()) {
      now_ = std::max(now_, *core_.alarm());
      core_.Wake(now_);
    }
  }

  void Drain() {
    v1::DrainServerRequest request;
    request.set_job(kJob);
    request.set_index(Server());
    request.set_nonce(input_.Below(3));
    PromiseCode(core_.DrainServer(request, now_).status());
  }
  void Resize() {
    v1::ResizeServersRequest request;
    request.set_servers(input_.Below(8));
    PromiseCode(core_.ResizeServers(request, now_).status());
    const uint32_t wanted = core_.Status(now_).servers_wanted();
    Promise(
        wanted >= options_.job.servers().replicas() && wanted <= options_.job.servers().shards(),
        "a job has as many servers as it can have");
  }

  void ShardSaved() {
    v1::ShardSavedRequest request;
    request.set_job(kJob);
    request.set_index(Server());
    request.set_clock(input_.Number());
    request.set_generation(Generation());
    if (input_.Below(8) == 0) {
      request.set_error("no space left");
    } else {
      *request.mutable_shard() = TestFile("shard-" + std::to_string(request.index()));
      for (uint32_t i = 0; leased_ && i < shape_.workers; ++i) {
        request.mutable_shard()->add_clocks(input_.Number());
      }
    }
    PromiseCode(core_.ShardSaved(request, now_));
  }

  void Pass() {
    now_ += std::chrono::milliseconds(input_.Byte() * 250);
    core_.Tick(now_);
  }

  // A message of another job, or of a foreign build.
  void Lie() {
    auto beat = From<v1::HeartbeatRequest>(Worker());
    beat.set_job(kJob + 1);
    Promise(!core_.Heartbeat(beat, now_).ok(), "nobody of another job is heard");
    auto request = WorkerRequest(Worker(), 20);
    request.mutable_build()->set_protocol(input_.Byte() + 1000u);
    Promise(!core_.RegisterWorker(request, now_).ok(), "nobody of another protocol is heard");
  }

  // ---- the service
  void AnswerAny() {
    if (commands_.empty()) return;
    const size_t index = input_.Below(static_cast<uint32_t>(commands_.size()));
    const uint8_t how = input_.Byte();
    const Command command = commands_[index];
    // Some answers come twice.
    if ((how & 0x30) != 0) commands_.erase(commands_.begin() + static_cast<long>(index));
    AnswerTo(command, (how & 7) != 0);
  }

  void AnswerTo(const Command& command, bool well) {
    const absl::Status status =
        well ? absl::OkStatus() : absl::UnavailableError("the fuzzer says no");
    if (const auto* configure = std::get_if<ConfigureServer>(&command)) {
      core_.Answered(ConfigureDone{configure->server, configure->round, status}, now_);
    } else if (const auto* save = std::get_if<SaveAll>(&command)) {
      for (uint32_t i = 0; i < shape_.servers; ++i) {
        absl::StatusOr<v1::SavedShard> shard = TestFile("shard-" + std::to_string(i));
        if (!well) shard = status;
        core_.Answered(SaveDone{i, save->round, save->clock, shard}, now_);
      }
    } else if (const auto* record = std::get_if<WriteRecord>(&command)) {
      core_.Answered(RecordDone{record->record, status}, now_);
    } else if (const auto* write = std::get_if<WriteManifest>(&command)) {
      core_.Answered(ManifestWritten{write->manifest.clock(), status}, now_);
    } else if (std::get_if<ShutdownServers>(&command) != nullptr) {
      for (uint32_t i = 0; i < shape_.servers; ++i) core_.Answered(ShutdownDone{i}, now_);
    }
  }

  void Obey() {
    for (Command& command : core_.TakeCommands()) TakeCommand(std::move(command));
  }

  // ---- what can be seen from outside
  void Look() {
    const v1::JobStatus status = core_.Status(now_);
    Promise(status.generation() >= seen_generation_, "generations do not fall");
    seen_generation_ = status.generation();
    Promise(status.workers_size() == static_cast<int>(shape_.workers), "every rank has its line");
    for (const v1::WorkerStatus& worker : status.workers()) {
      uint64_t& seen = seen_incarnations_[worker.rank()];
      Promise(worker.incarnation() >= seen, "incarnations do not fall");
      seen = worker.incarnation();
    }
    Promise(!over_ || core_.over(), "what is over stays over");
    Promise(!over_ || core_.state() == final_, "its outcome stays");
    over_ = core_.over();
    final_ = core_.state();
  }

  void TakeCommand(Command command) {
    if (const auto* connect = std::get_if<ConnectServer>(&command)) {
      Promise(connect->server < Most(), "commands go to servers of the job");
    } else if (const auto* configure = std::get_if<ConfigureServer>(&command)) {
      Promise(configure->server < Most(), "commands go to servers of the job");
    } else if (const auto* set = std::get_if<CommitSet>(&command)) {
      PromiseSet(*set);
      return;
    } else if (const auto* step = std::get_if<StepRecord>(&command)) {
      Promise(step->rank < shape_.workers, "records are of the job's workers");
      return;
    } else if (const auto* write = std::get_if<WriteManifest>(&command)) {
      PromiseManifest(write->manifest);
    }
    if (commands_.size() < kCommandsMax) commands_.push_back(std::move(command));
  }

  void PromiseSet(const CommitSet& set) {
    Promise(!set.ranks.empty() && set.ranks.back() < shape_.workers, "a set is of the job's ranks");
    Promise(std::adjacent_find(set.ranks.begin(), set.ranks.end(), std::greater_equal<>()) ==
                set.ranks.end(),
            "its ranks rise");
    if (set.generation != sets_of_) sets_.clear();
    sets_of_ = set.generation;
    const auto [known, first] = sets_.emplace(set.clock, set.ranks);
    Promise(first || known->second == set.ranks, "a clock has one set");
    const bool next = sets_.begin()->first + sets_.size() - 1 == sets_.rbegin()->first;
    Promise(next, "clock by clock");
  }

  void PromiseManifest(const v1::CheckpointManifest& manifest) {
    Promise(manifest.shards_size() > 0, "a manifest has its shards");
    Promise(manifest.shards_size() <= static_cast<int>(Most()), "of the job's shards");
    std::set<std::string> files;
    for (const auto& shard : manifest.shards()) {
      Promise(!shard.file().empty() && files.insert(shard.file()).second,
              "each server has its part of a cut");
    }
    if (!leased_) return;
    LeaseBook book({.batches_per_epoch = kBatches});
    PromiseOk(book.Restore(manifest.data()), "what a cut says of the data can be gone on from");
  }

  FuzzInput& input_;
  JobShape shape_;
  const CoordinatorOptions options_;
  const bool leased_;
  Time now_ = Time() + std::chrono::hours(1);
  CoordinatorCore core_;
  // By rank: the incarnation that was answered last.
  std::vector<uint64_t> incarnations_;
  uint64_t generation_ = 0;
  // From rank and incarnation to process.
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> lives_;
  // From generation to the clock at which all stop.
  std::map<uint64_t, uint64_t> stops_;
  // The sets of generation sets_of_, by clock.
  std::map<uint64_t, std::vector<uint32_t>> sets_;
  uint64_t sets_of_ = 0;
  std::vector<Command> commands_;
  uint64_t seen_generation_ = 0;
  std::map<uint32_t, uint64_t> seen_incarnations_;
  bool over_ = false;
  v1::JobState final_ = v1::JOB_STARTING;
};

}  // namespace
FUZZ_TARGET(coordinator_core) { World(input).Run(); }

}  // namespace leeway::coordinator_core
