#include "server/coordinator/coordinator_host.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include <spdlog/spdlog.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "config/shards.h"
#include "server/coordinator/coordinator_service.h"

namespace leeway {
namespace {

constexpr Duration kTickMax = std::chrono::milliseconds(100);

Duration TickOf(const v1::TrainingJob& job) {
  return std::min(kTickMax, FromSeconds(job.limits().lease_seconds() / 10));
}

template <typename Kind>
constexpr bool kIsLine = std::is_same_v<Kind, Event> || std::is_same_v<Kind, StepRecord> ||
                         std::is_same_v<Kind, EvaluationRecord>;

// True for commands that need no call to a server.
template <typename Kind>
constexpr bool kIsDoneElsewhere =
    kIsLine<Kind> || std::is_same_v<Kind, WriteRecord> || std::is_same_v<Kind, WriteManifest>;

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

// Returns false if the command is not a line for the log.
bool AddLine(const Due& due, std::string& lines) {
  return std::visit(
      [&](const auto& command) {
        using Kind = std::decay_t<decltype(command)>;
        if constexpr (std::is_same_v<Kind, Event>) Log(command);
        if constexpr (kIsLine<Kind>) absl::StrAppend(&lines, MetricsLine(command, due.wall), "\n");
        return kIsLine<Kind>;
      },
      due.command);
}

Event Unwritten(const std::string& run_dir, const absl::Status& status) {
  return {.name = "record_failed",
          .message = absl::StrCat(
              "coordinator.json cannot be written to ", run_dir,
              " (is the disk full?); all commands that depend on it wait: ", status.message())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<CoordinatorHost>> CoordinatorHost::Start(
    CoordinatorHostOptions options, CheckpointSink* sink) {
  ASSIGN_OR_RETURN(auto metrics, MetricsLog::Open(options.core.run_dir));
  return std::unique_ptr<CoordinatorHost>(
      new CoordinatorHost(std::move(options), sink, std::move(metrics)));
}

CoordinatorHost::CoordinatorHost(CoordinatorHostOptions options, CheckpointSink* sink,
                                 std::unique_ptr<MetricsLog> metrics)
    : options_(std::move(options)),
      service_(std::make_unique<CoordinatorService>(*this)),
      core_(options_.core, options_.now()),
      due_(TickOf(options_.core.job), options_.now()),
      links_(options_.core.job_id, ServersMost(options_.core.job), options_.now, *options_.security,
             [this](const CommandAnswer& answer) { Tell(answer); }),
      records_(sink, FromSeconds(options_.core.job.limits().start_seconds())),
      files_(sink, std::move(metrics),
             {.answer = [this](const CommandAnswer& answer) { Tell(answer); },
              .state_folders =
                  [this] {
                    return Ask([](CoordinatorCore& core, Time) { return core.StateFolders(); });
                  }}),
      thread_([this] { Run(); }) {}

CoordinatorHost::~CoordinatorHost() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
  // No callback of the links runs after this call. The destructor of files_ then finishes the
  // remaining writes.
  links_.Close();
}

void CoordinatorHost::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(service_.get());
}

void CoordinatorHost::Await(ServerQueue* queue) { service_->Await(queue); }

void CoordinatorHost::Tell(const CommandAnswer& answer) {
  Ask([&](CoordinatorCore& core, Time now) {
    core.Answered(answer, now);
    return 0;
  });
}

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
  // The thread sleeps until the next tick. If the core's alarm is due earlier, wake the thread.
  if (core_.alarm() && *core_.alarm() < due_.next_tick()) changed_.NotifyAll();
  if (commands.empty() && !core_.over()) return;
  due_.Add(std::move(commands), options_.wall_seconds());
  changed_.NotifyAll();
}

void CoordinatorHost::Run() {
  bool over = false;
  bool announced = false;
  while (true) {
    Do(Next(over));
    {
      MutexLock lock(mutex_);
      if (ending_ && !due_.ready()) return;
      // The record of the job's end must be written first.
      over = over && !due_.kept_back();
    }
    if (over && !std::exchange(announced, true)) Announce();
  }
}

Time CoordinatorHost::NextWake() const {
  return std::min(due_.next_tick(), core_.alarm().value_or(Time::max()));
}

std::vector<Due> CoordinatorHost::Next(bool& over) {
  MutexLock lock(mutex_);
  for (Time now = options_.now(); !ending_ && !due_.ready() && now < NextWake();
       now = options_.now()) {
    // The remaining time is converted to the steady clock, because options_.now may be another
    // clock.
    changed_.WaitUntil(mutex_, SteadyNow() + (NextWake() - now));
  }
  if (const Time now = options_.now(); now >= due_.next_tick()) {
    core_.Tick(now);
    Collect();
    due_.Ticked(now);
  } else {
    core_.Wake(now);
    Collect();
  }
  over = core_.over();
  if (due_.kept_back() && !ending_) return {};
  return due_.Take();
}

// Neighbouring lines for metrics.jsonl are written together.
void CoordinatorHost::Do(std::vector<Due> due) {
  std::string lines;
  std::vector<Due> kept;
  for (Due& each : due) {
    if (AddLine(each, lines)) continue;
    auto* record = std::get_if<WriteRecord>(&each.command);
    if (!kept.empty()) {
      kept.push_back(std::move(each));
    } else if (record != nullptr && !record->awaited) {
      records_.Owe(std::move(*record));
    } else if (record != nullptr) {
      if (!Write(*record, lines)) kept.push_back(std::move(each));
    } else {
      Do(std::move(each.command));
    }
  }
  // A record that was kept back is newer than the owed one, which then need not be written.
  if (kept.empty() && records_.owed()) Write(WriteRecord(*records_.owed()), lines);
  if (!kept.empty()) {
    MutexLock lock(mutex_);
    due_.KeepBack(std::move(kept));
  }
  if (!lines.empty()) files_.Append(std::move(lines));
  files_.Tick(options_.now());
}

void CoordinatorHost::Do(Command command) {
  // The command depends on a record that was given up.
  if (std::holds_alternative<ConfigureServer>(command) && records_.given_up()) return;
  if (auto* manifest = std::get_if<WriteManifest>(&command)) {
    return files_.Write(std::move(*manifest));
  }
  std::visit(
      [this](const auto& each) {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (!kIsDoneElsewhere<Kind>) links_.Do(each);
      },
      command);
}

// Runs on the host's own thread, because later commands may begin only when the record is durable.
bool CoordinatorHost::Write(const WriteRecord& command, std::string& lines) {
  const auto attempt = records_.Write(command, files_.folder_gone(), options_.now);
  if (attempt.news) {
    const Due line{Unwritten(options_.core.run_dir, attempt.status), options_.wall_seconds()};
    AddLine(line, lines);
  }
  if (attempt.settled) Tell(RecordDone{command.record, attempt.status});
  return attempt.settled;
}

void CoordinatorHost::Announce() {
  // The job is over only when the last lines of metrics.jsonl are written.
  files_.Keep();
  files_.Post([this] {
    MutexLock lock(mutex_);
    over_ = core_.state();
    changed_.NotifyAll();
  });
}

}  // namespace leeway
