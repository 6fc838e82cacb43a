#include "server/coordinator/coordinator_host.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/status.h"
#include "config/shards.h"
#include "server/coordinator/coordinator_service.h"

namespace leeway {
namespace {

using Control = ControlLink::Stub;

constexpr Duration kTickMax = std::chrono::milliseconds(100);
// How long a server may take to hear that a rank is live or not, before it is told again.
constexpr Duration kSetLiveAttempt = std::chrono::seconds(5);
// The same for whose contributions count; the server makes the updates before it answers.
constexpr Duration kCommitAttempt = std::chrono::seconds(60);
// Metrics are dropped, rather than memory filled, when the disk is this many writes behind.
constexpr size_t kWritesBehindMax = 10'000;

Duration TickOf(const v1::TrainingJob& job) {
  return std::min(kTickMax, FromSeconds(job.limits().lease_seconds() / 10));
}

// By another overload, or into the log.
template <typename Kind>
constexpr bool kIsDoneElsewhere =
    std::is_same_v<Kind, Event> || std::is_same_v<Kind, StepRecord> ||
    std::is_same_v<Kind, EvaluationRecord> || std::is_same_v<Kind, WriteRecord>;

void Log(const Event& event) {
  std::string line = event.name;
  if (event.server) absl::StrAppend(&line, ", server ", *event.server);
  if (event.rank) absl::StrAppend(&line, ", worker ", *event.rank);
  if (event.incarnation) absl::StrAppend(&line, ", incarnation ", *event.incarnation);
  if (event.clock) absl::StrAppend(&line, ", clock ", *event.clock);
  if (!event.state.empty()) absl::StrAppend(&line, ", ", event.state);
  if (!event.message.empty()) absl::StrAppend(&line, ": ", event.message);
  const bool bad = absl::StrContains(event.name, "lost") || absl::StrContains(event.name, "fail") ||
                   event.state == "failed";
  spdlog::log(bad ? spdlog::level::warn : spdlog::level::info, "{}", line);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorHost>> CoordinatorHost::Start(
    CoordinatorHostOptions options, CheckpointSink* sink) {
  ASSIGN_OR_RETURN(auto metrics, MetricsLog::Open(options.core.run_dir + "/metrics.jsonl"));
  return std::unique_ptr<CoordinatorHost>(
      new CoordinatorHost(std::move(options), sink, std::move(metrics)));
}

CoordinatorHost::CoordinatorHost(CoordinatorHostOptions options, CheckpointSink* sink,
                                 std::unique_ptr<MetricsLog> metrics)
    : options_(std::move(options)),
      sink_(sink),
      tick_(TickOf(options_.core.job)),
      patience_(FromSeconds(options_.core.job.limits().start_seconds())),
      metrics_(std::move(metrics)),
      service_(std::make_unique<CoordinatorService>(*this)),
      core_(options_.core, options_.now()),
      next_tick_(options_.now() + tick_),
      links_(ShardsOf(options_.core.job)),
      thread_([this] { Run(); }) {}

CoordinatorHost::~CoordinatorHost() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  // No callback of theirs runs after this; files_ then does what is left.
  links_.clear();
}

void CoordinatorHost::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(service_.get());
}

void CoordinatorHost::Await(ServerQueue* queue) { service_->Await(queue); }

void CoordinatorHost::StopJob(const std::string& reason) {
  Ask([&](CoordinatorCore& core, Time now) {
    core.StopJob(reason, now);
    return 0;
  });
}

v1::JobStatus CoordinatorHost::Status() {
  return Ask([](CoordinatorCore& core, Time now) { return core.Status(now); });
}

v1::JobState CoordinatorHost::WaitUntilOver() {
  MutexLock lock(mutex_);
  while (!over_) changed_.Wait(mutex_);
  return *over_;
}

std::optional<v1::JobState> CoordinatorHost::WaitUntilOver(Time deadline) {
  MutexLock lock(mutex_);
  while (!over_ && changed_.WaitUntil(mutex_, deadline)) {
  }
  return over_;
}

// ---- commands, in order

void CoordinatorHost::Collect() {
  std::vector<Command> commands = core_.TakeCommands();
  // The thread sleeps until the next tick.
  if (core_.alarm() && *core_.alarm() < next_tick_) changed_.NotifyAll();
  if (commands.empty() && !core_.over()) return;
  const double wall = options_.wall_seconds();
  for (Command& command : commands) due_.push_back({std::move(command), wall});
  changed_.NotifyAll();
}

void CoordinatorHost::Run() {
  bool over = false;
  while (true) {
    Do(Next(over));
    {
      MutexLock lock(mutex_);
      if (ending_ && (due_.empty() || kept_back_)) return;
      // The record of the end comes first.
      over = over && !kept_back_;
    }
    if (over) Announce();
  }
}

Time CoordinatorHost::NextWake() const {
  return std::min(next_tick_, core_.alarm().value_or(Time::max()));
}

std::vector<CoordinatorHost::Due> CoordinatorHost::Next(bool& over) {
  MutexLock lock(mutex_);
  while (!ending_ && (due_.empty() || kept_back_) && options_.now() < NextWake()) {
    changed_.WaitUntil(mutex_, NextWake());
  }
  if (const Time now = options_.now(); now >= next_tick_) {
    core_.Tick(now);
    Collect();
    next_tick_ = now + tick_;
    kept_back_ = false;
  } else {
    core_.Wake(now);
    Collect();
  }
  over = core_.over();
  if (kept_back_ && !ending_) return {};
  return std::exchange(due_, {});
}

bool CoordinatorHost::AddLine(const Due& due, std::string& lines) {
  return std::visit(
      [&](const auto& command) {
        using Kind = std::decay_t<decltype(command)>;
        if constexpr (std::is_same_v<Kind, Event>) Log(command);
        constexpr bool is_line = std::is_same_v<Kind, Event> || std::is_same_v<Kind, StepRecord> ||
                                 std::is_same_v<Kind, EvaluationRecord>;
        if constexpr (is_line) absl::StrAppend(&lines, MetricsLine(command, due.wall), "\n");
        return is_line;
      },
      due.command);
}

// Neighbouring lines for metrics.jsonl go to the file together.
void CoordinatorHost::Do(std::vector<Due> due) {
  std::string lines;
  std::vector<Due> kept;
  for (Due& each : due) {
    if (AddLine(each, lines)) continue;
    auto* record = std::get_if<WriteRecord>(&each.command);
    if (!kept.empty()) {
      kept.push_back(std::move(each));
    } else if (record != nullptr && !record->awaited) {
      owed_ = std::move(*record);
    } else if (record != nullptr) {
      if (!Write(*record, lines)) kept.push_back(std::move(each));
    } else {
      std::visit(
          [this](auto& command) {
            using Kind = std::decay_t<decltype(command)>;
            if constexpr (!kIsDoneElsewhere<Kind>) Do(std::move(command));
          },
          each.command);
    }
  }
  // One that is kept back is newer.
  if (kept.empty() && owed_) Write(WriteRecord(*owed_), lines);
  if (!kept.empty()) KeepBack(std::move(kept));
  if (!lines.empty()) Append(std::move(lines));
}

void CoordinatorHost::Append(std::string lines) {
  if (files_.waiting() > kWritesBehindMax) {
    spdlog::warn("metrics.jsonl: the disk does not keep up; {} bytes of metrics dropped",
                 lines.size());
    return;
  }
  files_.Post([this, lines = std::move(lines)] {
    if (const absl::Status status = metrics_->Append(lines); !status.ok()) {
      spdlog::warn("{}", status.ToString());
    }
  });
}

void CoordinatorHost::Do(const ConnectServer& command) {
  links_[command.server] =
      std::make_unique<ControlLink>(MakeChannel(command.address), options_.now);
}

void CoordinatorHost::Do(const DisconnectServer& command) { links_[command.server].reset(); }

void CoordinatorHost::Do(const ConfigureServer& command) {
  // It follows from a record that was given up; or nobody is there to be told.
  if (given_up_ || !links_[command.server]) return;
  links_[command.server]->Call(&Control::Configure, command.request, {.deadline = command.deadline},
                               [this, server = command.server, round = command.round](
                                   const absl::Status& status, const v1::ConfigureReply&) {
                                 Ask([&](CoordinatorCore& core, Time now) {
                                   core.ConfigureDone(server, round, status, now);
                                   return 0;
                                 });
                               });
}

void CoordinatorHost::Do(const SetLive& command) {
  v1::SetLiveRequest request;
  request.set_job(options_.core.job_id);
  request.set_rank(command.rank);
  request.set_live(command.live);
  for (size_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    links_[server]->Call(
        &Control::SetLive, request, {.deadline = Time::max(), .attempt = kSetLiveAttempt},
        [server, rank = command.rank](const absl::Status& status, const v1::SetLiveReply&) {
          if (status.ok()) return;
          spdlog::warn("telling server {} about worker {}: {}", server, rank, status.ToString());
        });
  }
}

void CoordinatorHost::Do(const CommitSet& command) {
  v1::CommitSetRequest request;
  request.set_job(options_.core.job_id);
  request.set_generation(command.generation);
  request.set_clock(command.clock);
  request.mutable_ranks()->Add(command.ranks.begin(), command.ranks.end());
  for (size_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    links_[server]->Call(
        &Control::CommitSet, request, {.deadline = Time::max(), .attempt = kCommitAttempt},
        [server, clock = command.clock](const absl::Status& status, const v1::CommitSetReply&) {
          if (status.ok()) return;
          spdlog::warn("telling server {} whose contributions clock {} is made of: {}", server,
                       clock, status.ToString());
        });
  }
}

void CoordinatorHost::Do(const SaveAll& command) {
  v1::SaveRequest request;
  request.set_job(options_.core.job_id);
  request.set_clock(command.clock);
  request.set_generation(command.generation);
  for (uint32_t shard = 0; shard < command.owners.size(); ++shard) {
    if (!links_[command.owners[shard]]) continue;
    const auto done = [this, shard, round = command.round, clock = command.clock](
                          const absl::Status& status, const v1::SavedShard& file) {
      absl::StatusOr<v1::SavedShard> saved = file;
      if (!status.ok()) saved = status;
      Ask([&](CoordinatorCore& core, Time now) {
        core.SaveDone(shard, round, clock, saved, now);
        return 0;
      });
    };
    request.set_shard(shard);
    links_[command.owners[shard]]->Call(&Control::Save, request, {.deadline = command.deadline},
                                        done);
  }
}

// On this thread: what comes after it in order may only begin once the record is durable.
bool CoordinatorHost::Write(const WriteRecord& command, std::string& lines) {
  const absl::Status status = sink_->WriteRecord(command.record);
  if (status.ok()) {
    owed_.reset();
    awaited_since_.reset();
    given_up_ = complained_ = false;
  } else {
    if (!std::exchange(complained_, true)) AddLine(Unwritten(status), lines);
    if (!command.awaited) return false;
    const Time now = options_.now();
    if (!awaited_since_) awaited_since_ = now;
    given_up_ |= now - *awaited_since_ >= patience_;
    if (!given_up_) return false;
  }
  Ask([&](CoordinatorCore& core, Time at) {
    core.RecordDone(command.record, status, at);
    return 0;
  });
  return true;
}

CoordinatorHost::Due CoordinatorHost::Unwritten(const absl::Status& status) const {
  return {Event{.name = "record_failed",
                .message = absl::StrCat("coordinator.json cannot be written: free space in ",
                                        options_.core.run_dir,
                                        "; what is to follow from it waits: ", status.message())},
          options_.wall_seconds()};
}

void CoordinatorHost::KeepBack(std::vector<Due> due) {
  MutexLock lock(mutex_);
  // What has come meanwhile comes after it.
  due.insert(due.end(), std::move_iterator(due_.begin()), std::move_iterator(due_.end()));
  due_ = std::move(due);
  kept_back_ = true;
}

void CoordinatorHost::Do(WriteManifest command) {
  files_.Post([this, command = std::move(command)] { WriteCheckpoint(command); });
}

void CoordinatorHost::WriteCheckpoint(const WriteManifest& command) {
  const uint64_t clock = command.manifest.clock();
  absl::Status status;
  for (const AdoptState& state : command.adopt) {
    if (status.ok()) status = sink_->AdoptWorkerState(state.from_clock, state.file, clock);
  }
  if (status.ok()) status = sink_->WriteManifest(command.manifest);
  Ask([&](CoordinatorCore& core, Time now) {
    core.ManifestWritten(clock, status, now);
    return 0;
  });
  if (!status.ok()) return;
  // The new checkpoint exists, whatever becomes of the old ones.
  const absl::Status removed = sink_->RemoveOld(
      [this] { return Ask([](CoordinatorCore& core, Time) { return core.StateFolders(); }); });
  if (!removed.ok()) spdlog::warn("removing old checkpoints: {}", removed.ToString());
}

void CoordinatorHost::Do(const ShutdownServers& command) {
  v1::ShutdownRequest request;
  request.set_job(options_.core.job_id);
  for (uint32_t server = 0; server < links_.size(); ++server) {
    if (!links_[server]) continue;
    // A server that cannot be reached any more is taken for gone: it may exit before it answers.
    links_[server]->Call(&Control::Shutdown, request,
                         {.deadline = options_.now() + command.limit, .retry = false},
                         [this, server](const absl::Status&, const v1::ShutdownReply&) {
                           Ask([&](CoordinatorCore& core, Time now) {
                             core.ShutdownDone(server, now);
                             return 0;
                           });
                         });
  }
}

void CoordinatorHost::Announce() {
  if (std::exchange(announced_, true)) return;
  // After the last lines of metrics.jsonl.
  files_.Post([this] {
    MutexLock lock(mutex_);
    over_ = core_.state();
    changed_.NotifyAll();
  });
}

}  // namespace leeway
