// Carries out the commands of a simulated coordinator's core.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/whole_control.h"

namespace leeway::sim {

void WholeControl::Carry(Context& context) {
  for (auto commands = core_->TakeCommands(); !commands.empty(); commands = core_->TakeCommands()) {
    for (const Command& command : commands) {
      std::visit([&](const auto& each) { Do(context, each); }, command);
    }
  }
  SetAlarm(context);
}

void WholeControl::SetAlarm(Context& context) {
  if (core_->alarm() == alarm_) return;
  alarm_ = core_->alarm();
  if (!alarm_) return;
  Message timer = Timer(Kind::kWake, kCoordinator);
  timer.boot = boot_;
  const Duration left = *alarm_ - context.LocalTime(kCoordinator);
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(left).count();
  // The timer rings at that time or later, however it is rounded.
  context.After(kCoordinator, std::max<Micros>(0, micros) + 2, timer);
}

void WholeControl::Do(Context& context, const ConfigureServer& command) {
  // An earlier process may still answer: only the answer to this command counts.
  const std::string& folder = command.request.checkpoint();
  uint64_t clock = 0;
  if (!folder.empty())
    clock = std::stoull(folder.substr(folder.find_last_not_of("0123456789") + 1));
  Message give;
  give.order = Order::kConfigure;
  give.clock = command.round;
  give.generation = command.request.generation();
  give.stop_at = clock;
  give.flag = command.request.load();
  give.value = context.placements.size();
  if (context.shape.sets() && give.flag) {
    context.sets.Begin(context.shape, give.generation, give.stop_at);
  }
  context.placements.push_back(command.request.placement());
  Tell(context, command.server, give);
  if (context.bug != Bug::kHandOverUnheard || give.flag) return;
  core_->Answered(ConfigureDone{command.server, command.round, absl::OkStatus()},
                  context.LocalTime(kCoordinator));
}

void WholeControl::Do(Context& context, const ConnectServer& command) {
  Connect(command.server, speaker_);
  // The process has died since it registered.
  if (speaker_ != context.boots[command.server]) context.SeeGone(command.server, speaker_);
}

void WholeControl::Do(Context& context, const DisconnectServer& command) {
  if (context.shape.resizes) Connect(command.server, UINT32_MAX);
}

// The record is durable at once if anything depends on it.
void WholeControl::Do(Context& context, const WriteRecord& command) {
  owed_.reset();
  if (command.awaited) return Keep(context, command.record);
  owed_ = command.record;
}

void WholeControl::Keep(Context& context, const v1::CoordinatorRecord& record) {
  const v1::Placement before = record_.placement();
  const bool over = record.outcome() != v1::JOB_STARTING;
  if (!over || context.bug != Bug::kEndForgotten) record_ = record;
  // The record on disk has the previous placement.
  const bool late = context.bug == Bug::kRecordLate && before.shards_size() > 0;
  if (late) *record_.mutable_placement() = std::exchange(last_placement_, record_.placement());
  if (!late) last_placement_ = record_.placement();
  if (record_.generation() > context.generation) {
    ++context.counts.went_back;
    live_.fill(true);
  }
  context.generation = std::max(context.generation, record_.generation());
  core_->Answered(RecordDone{record, absl::OkStatus()}, context.LocalTime(kCoordinator));
}

void WholeControl::Do(Context& context, const SetLive& command) {
  live_[command.rank] = command.live;
  TellLive(context, command.rank, command.live);
}

void WholeControl::Do(Context& context, const CommitSet& command) {
  Message give;
  give.order = Order::kCommit;
  give.generation = command.generation;
  give.clock = command.clock;
  for (const uint32_t rank : command.ranks) give.value |= uint64_t{1} << rank;
  const bool again = context.sets.SetOf(command.generation, command.clock).has_value();
  CheckSet(context, command, give.value);
  const uint64_t fewer = give.value & (give.value - 1);
  if (again && fewer != 0 && context.bug == Bug::kSetChanged) give.value = fewer;
  for (uint32_t i = 0; i < context.shape.servers; ++i) Tell(context, i, give);
}

void WholeControl::CheckSet(Context& context, const CommitSet& command, uint64_t ranks) {
  const bool again = context.sets.SetOf(command.generation, command.clock).has_value();
  if (!context.sets.Commit(context.shape, command.generation, command.clock, ranks)) {
    context.Violate("which contributions a clock is made of is said once",
                    [&] { return absl::StrCat("clock ", command.clock, ": ", absl::Hex(ranks)); });
  }
  if (again) return;
  ++context.counts.sets;
  uint32_t missing = 0;
  for (uint32_t r = 0; r < context.shape.workers; ++r) {
    const bool wanted = !context.shape.continues || live_[r];
    missing += wanted && (ranks >> r & 1) == 0 ? 1 : 0;
  }
  context.counts.smaller_sets += ranks != Below(context.shape.workers) ? 1 : 0;
  if (missing <= context.shape.backup && ranks != 0) return;
  context.Violate("no clock does without more than it may",
                  [&] { return absl::StrCat("clock ", command.clock, ": ", absl::Hex(ranks)); });
}

void WholeControl::Do(Context& context, const SaveAll& command) {
  for (uint32_t shard = 0; shard < command.owners.size(); ++shard) {
    Message give;
    give.order = Order::kSave;
    give.incarnation = command.round;
    give.clock = command.clock;
    give.generation = command.generation;
    give.rank = static_cast<uint8_t>(shard);
    Tell(context, command.owners[shard], give);
  }
}

void WholeControl::Do(Context& context, const ShutdownServers&) {
  Message give;
  give.order = Order::kShutdown;
  for (uint32_t i = 0; i < context.shape.servers; ++i) Tell(context, i, give);
}

void WholeControl::Do(Context& context, const WriteManifest& command) {
  ++context.counts.manifests;
  const v1::CheckpointManifest& manifest = command.manifest;
  const bool whole = manifest.shards_size() == static_cast<int>(context.shape.servers) &&
                     (!(context.shape.elastic && context.shape.sync()) || context.shape.sets() ||
                      manifest.worker_states_size() == static_cast<int>(context.shape.workers));
  if (!whole || (manifest_.clock() > 0 && manifest.clock() <= manifest_.clock())) {
    context.Violate("a checkpoint has all its parts, and the newest is the last", [&] {
      return absl::StrCat("at clock ", manifest.clock(), " after ", manifest_.clock());
    });
  }
  writing_[manifest.clock()] = manifest;
  Message timer;
  timer.kind = Kind::kManifest;
  timer.clock = manifest.clock();
  timer.boot = boot_;
  context.After(kCoordinator, 500, timer);
}

void WholeControl::CheckPatience(Context& context, const Event& event) {
  const Time now = context.LocalTime(kCoordinator);
  // Otherwise something may be lost with a process, or with the state that a worker keeps.
  const bool whole = context.counts.server_kills == 0 && context.counts.coordinator_kills == 0 &&
                     !context.shape.elastic && !context.shape.sets();
  if (event.name == "going_back" && whole) {
    context.Violate("nobody goes back while every holder lives", [&] { return event.message; });
  }
  const bool silent =
      event.name != "went_back" && absl::StrContains(event.message, "no sign of life");
  if (silent && extended_ && now - *extended_ < std::chrono::microseconds(kLease)) {
    context.Violate("who was granted one more lease has it",
                    [&] { return absl::StrCat(event.name, ": ", event.message); });
  }
  if (event.name != "leases_extended") return;
  ++context.counts.extended;
  extended_ = now;
}

void WholeControl::Do(Context& context, const Event& event) {
  CheckPatience(context, event);
  const bool taken = extended_ == context.LocalTime(kCoordinator) &&
                     event.name == "leases_extended" && context.bug == Bug::kLeaseTakenBack;
  for (int quarter = 1; taken && quarter <= 5; ++quarter) {
    core_->Tick(*extended_ + quarter * std::chrono::microseconds(kLease / 4));
  }
  if (event.name == "resized") ++context.counts.resized;
  if (event.name == "placement_changed") ++context.counts.placements;
  const bool again = absl::StrContains(event.message, "started again");
  if (event.name == "placement_changed" && again) ++context.counts.taken_up;
  if (event.name == "worker_lost" && again) ++context.counts.without;
}

}  // namespace leeway::sim
