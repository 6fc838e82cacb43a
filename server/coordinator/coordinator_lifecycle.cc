// From one phase to the next.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/blocks.h"
#include "common/status.h"
#include "config/length.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/coordinator/coordinator_core.h"
#include "server/coordinator/phrases.h"

namespace leeway {

void CoordinatorCore::Tick(Time now) {
  // Nobody could be heard while this process itself stood still (suspended, starved).
  if (now - last_tick_ > lease_ / 2) {
    ranks_.Forgive(now);
    servers_.Forgive(now);
  }
  last_tick_ = now;
  Wake(now);
  ExpireRanks(now);
  ExpireServers(now);
  Rebalance(now);
  for (const uint64_t clock :
       cuts_.Expire(now, FromSeconds(options_.job.limits().checkpoint_seconds()))) {
    Emit({.name = "checkpoint_failed",
          .clock = clock,
          .message = absl::StrCat("not complete in time; missing: ", MissingParts(clock))});
  }
  Advance(now);
}

void CoordinatorCore::ExpireRanks(Time now) {
  for (const uint32_t rank : ranks_.Expire(now)) {
    Lose(rank, absl::StrCat("no sign of life for ", Seconds(lease_), " s"), now);
  }
}

void CoordinatorCore::Lose(uint32_t rank, const std::string& why, Time now) {
  if (ranks_[rank].state != RankState::kLost) {
    ranks_.Leave(rank, RankState::kLost, ranks_[rank].clock, now);
  }
  Emit({.name = "worker_lost",
        .rank = rank,
        .incarnation = ranks_[rank].incarnation,
        .clock = ranks_[rank].clock,
        .message = why});
  TakeBackLeases(rank);
  TellLive(rank, false, now);
}

void CoordinatorCore::Advance(Time now) {
  if (phase_ == Phase::kStarting) AdvanceStart(now);
  if (phase_ > Phase::kGoingBack && phase_ < Phase::kShutdown) MakeUpForLost(now);
  if (phase_ == Phase::kGoingBack) AdvanceGoingBack(now);
  if (phase_ == Phase::kRunning) AdvanceRunning(now);
  if (phase_ == Phase::kStopping) AdvanceStopping(now);
  if (phase_ == Phase::kSaving) AdvanceSaving(now);
  const bool told = servers_.AllShutDown() && waiting_leavers_.empty();
  if (phase_ == Phase::kShutdown && (told || now >= deadline_)) phase_ = Phase::kOver;
}

// ---- starting

void CoordinatorCore::AdvanceStart(Time now) {
  const bool servers_here = servers_.Missing().empty() && HoldersMissing(now).empty();
  if (EnoughWorkers(now) && servers_here && schema_) {
    ChooseAutoCodec();
    if (!length_) ComputeLength(now);
    if (phase_ != Phase::kStarting) return;
    if (length_ && !configuring_ && TakeUp(now)) return;
    if (length_ && !configuring_) Configure(created_ + start_limit(), now);
    if (phase_ == Phase::kStarting && servers_.Unready().empty()) Begin(now);
  }
  if (phase_ != Phase::kStarting || now - created_ < start_limit()) return;
  if (stop_reason_.empty()) return Fail(Missing(now), now);
  BeginStopping(now);
}

// A job that has begun goes on without who gives no sign of life for a lease, unless nothing goes
// on without it; so it does when its coordinator was started again in between.
bool CoordinatorCore::EnoughWorkers(Time now) const {
  if (WorkersMissing() == 0) return true;
  return StepsBefore() > 0 && !lockstep() && now - created_ > lease_ &&
         ranks_.Count(RankState::kRunning) > 0;
}

uint64_t CoordinatorCore::StepsBefore() const {
  return options_.before ? options_.before->steps_per_epoch() : 0;
}

void CoordinatorCore::ComputeLength(Time now) {
  uint64_t steps = StepsBefore();
  if (steps == 0) steps = *std::max_element(steps_per_epoch_.begin(), steps_per_epoch_.end());
  if (steps == 0) return Fail("no worker has any training data", now);
  const v1::TrainingJob& job = options_.job;
  length_ = leeway::ComputeLength(job, steps);
  if (const absl::Status opened = OpenLeases(); !opened.ok()) {
    length_.reset();
    return Fail(std::string(opened.message()), now);
  }
  cut_every_ =
      job.checkpoint().has_every() ? IntervalClocks(job.checkpoint().every(), *length_) : 0;
  const BlockLayout layout =
      BlockLayout::ForModel(schema_->total(), placement_.shards(), job.servers().block_bytes());
  block_elements_ = layout.block_elements();
  cuts_.Expect(layout.ServersWithBlocks(), KeepsWorkerState(job));
}

// Once, before a server or a worker is told how to encode anything.
void CoordinatorCore::ChooseAutoCodec() {
  if (!options_.auto_basis || options_.auto_codec) return;
  const AutoChoice choice = ChooseAuto(*options_.auto_basis, links_, servers_.OnOneHost());
  options_.auto_codec = choice.codec;
  ResolveAuto(choice.codec, *options_.job.mutable_compression());
  Emit({.name = "codec_chosen",
        .message = absl::StrCat("auto is ", NameOf(choice.codec), ", ", choice.why)});
}

v1::ConfigureRequest CoordinatorCore::Configuration(bool load) const {
  v1::ConfigureRequest request;
  request.set_job(options_.job_id);
  request.set_generation(generation_);
  *request.mutable_schema() = *schema_;
  request.set_block_elements(block_elements_);
  request.set_load(load);
  if (load && cuts_.newest()) {
    request.set_checkpoint(CheckpointFolder(options_.run_dir, *cuts_.newest()));
  }
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    request.add_servers(servers_[i].address);
    *request.add_local_servers() = servers_[i].local;
  }
  *request.mutable_placement() = placement_.proto();
  *request.mutable_length() = *length_;
  request.set_cut_every(cut_every_);
  request.set_run_dir(options_.run_dir);
  if (options_.auto_codec) *request.mutable_auto_codec() = *options_.auto_codec;
  return request;
}

void CoordinatorCore::Configure(Time deadline, Time now) {
  if (const absl::Status restored = RestoreLeases(); !restored.ok()) {
    return Fail(std::string(restored.message()), now);
  }
  RemoveIdle();
  const std::set<uint32_t> here = servers_.Here();
  placement_.Reset({here.begin(), here.end()});
  const v1::ConfigureRequest request = Configuration(true);
  // Before anybody acts on it: a generation is never used twice, and no replica is synced any more.
  commands_.push_back(WriteRecord{Record(v1::JOB_STARTING)});
  servers_.MarkAllUnready();
  RestartQuorum();
  configuring_ = true;
  ++round_;
  for (const uint32_t i : here) {
    commands_.push_back(ConfigureServer{i, round_, request, deadline});
  }
}

void CoordinatorCore::Begin(Time now) {
  phase_ = Phase::kRunning;
  began_ = now;
  resizing_ = options_.before && options_.before->servers() > 0 && placement_.ToMove() > 0;
  ranks_.Forgive(now);
  const uint64_t clock = options_.resumed ? options_.resumed->manifest.clock() : 0;
  Emit({.name = "job_started",
        .clock = clock,
        .message = absl::StrCat(options_.resumed ? "resumed at clock " : "from clock ", clock,
                                " of ", length_->clocks(), ", ", schema_->total(), " parameters, ",
                                servers_.wanted(), " servers, ", ranks_.size(), " workers")});
  // Before any worker is answered.
  commands_.push_back(WriteRecord{Record(v1::JOB_STARTING)});
  for (const uint32_t rank : ranks_.In({RankState::kWaiting, RankState::kLost})) {
    Lose(rank, "it has not come back since the coordinator was started again", now);
  }
  // Asked for while the job could not be stopped: it had begun, and its servers were not here.
  if (!stop_reason_.empty()) return BeginStopping(now);
  if (options_.before && !options_.before->stop_reason().empty()) {
    StopJob(options_.before->stop_reason(), now);
  }
}

size_t CoordinatorCore::WorkersMissing() const {
  return ranks_.Count(RankState::kWaiting) + ranks_.Count(RankState::kLost);
}

std::string CoordinatorCore::Missing(Time now) const {
  const bool going_back = phase_ == Phase::kGoingBack;
  const Time since = going_back ? going_back_since_ : created_;
  const std::string clock =
      absl::StrFormat(" (%.0f s of %.0f s)", Seconds(now - since), Seconds(start_limit()));
  std::string workers;
  // Ten thousand workers that register ask this ten thousand times.
  if (!going_back) {
    workers = ListOf("worker", ranks_.In({RankState::kWaiting, RankState::kLost}, kNamedMax),
                     WorkersMissing());
  }
  std::vector<uint32_t> servers = servers_.Missing();
  const std::vector<uint32_t> holders = HoldersMissing(now);
  servers.insert(servers.end(), holders.begin(), holders.end());
  const std::string who = And(workers, ListOf("server", servers));
  if (!who.empty()) return absl::StrCat("waiting for ", who, " to register", clock);
  if (!schema_) return absl::StrCat("waiting for a worker that brings the model", clock);
  if (going_back && cuts_.WritingAny()) {
    return absl::StrCat("waiting for the manifest of a checkpoint to be written", clock);
  }
  return absl::StrCat("waiting for ", ListOf("server", servers_.Unready()), " to make ready",
                      clock);
}

// ---- running, stopping

void CoordinatorCore::AdvanceRunning(Time now) {
  if (ranks_.Count(RankState::kRunning) == 0 && AllGone(now)) BeginStopping(now);
}

void CoordinatorCore::StopJob(const std::string& reason, Time now) {
  if (phase_ >= Phase::kStopping || !stop_reason_.empty()) return;
  stop_reason_ = reason.empty() ? "somebody asked for it" : Shortened(reason);
  Emit({.name = "stop_requested", .message = stop_reason_});
  const bool begun = began_ || StepsBefore() > 0;
  // What follows from it would be as right without it.
  if (begun) commands_.push_back(WriteRecord{.record = RecordOfStop(), .awaited = false});
  // What is stopped is a job that runs: first it must be able to, for servers hold what is to be
  // saved.
  if (phase_ != Phase::kGoingBack && (began_ || !begun)) BeginStopping(now);
}

void CoordinatorCore::Fail(const std::string& why, Time now) {
  if (phase_ >= Phase::kShutdown || !failure_.empty()) return;
  failure_ = why;
  // Without all servers nobody gets anywhere.
  if (phase_ == Phase::kGoingBack) aborted_ = true;
  Emit({.name = "job_failing", .message = why});
  if (phase_ < Phase::kStopping) BeginStopping(now);
}

void CoordinatorCore::Abort(const std::string& why, Time now) {
  aborted_ = true;
  Fail(why, now);
}

void CoordinatorCore::BeginStopping(Time now) {
  phase_ = Phase::kStopping;
  if (commits_sets_ && began_) FixStopHere();
  AdvanceStopping(now);
}

// Does anything still depend on this rank?
bool CoordinatorCore::Gone(uint32_t number, Time now) const {
  const Rank& rank = ranks_[number];
  if (rank.left() || rank.state == RankState::kWaiting || !began_) return true;
  if (rank.state != RankState::kLost) return false;
  const bool needed = phase_ == Phase::kRunning || lockstep();
  if (aborted_ || !needed) return true;
  // All there is to do is done without it.
  if (commits_sets_ && Complete()) return true;
  const bool continues = options_.job.workers().on_worker_loss() == v1::WORKER_LOSS_CONTINUE;
  const bool others_done =
      ranks_.Count(RankState::kRunning) == 0 && ranks_.Count(RankState::kFinished) > 0;
  if (continues && others_done) return true;
  if (ReachedStop(number)) return true;
  return now - rank.since > start_limit();
}

bool CoordinatorCore::ReachedStop(uint32_t rank) const {
  return stop_at_ && ranks_[rank].clock >= *stop_at_;
}

bool CoordinatorCore::AllGone(Time now) const {
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    if (!Gone(i, now)) return false;
  }
  return true;
}

// In sync mode the others cannot reach the stop clock without a lost rank's contributions; they are
// told to break off where they are.
void CoordinatorCore::GiveUpLost(Time now) {
  if (!lockstep() || !began_ || aborted_) return;
  for (const uint32_t rank : ranks_.In({RankState::kLost})) {
    if (!Gone(rank, now) || ReachedStop(rank) || ranks_.Count(RankState::kRunning) == 0) continue;
    // They have been blocked for long: each is where the slowest of them is.
    for (const uint32_t blocked : ranks_.In({RankState::kRunning})) {
      const uint64_t clock = ranks_[blocked].clock;
      stop_at_ = std::min(stop_at_.value_or(clock), clock);
    }
    Fail(absl::StrCat("worker ", rank, " was lost at clock ", ranks_[rank].clock,
                      " while the job was stopping, and did not come back within ",
                      Seconds(start_limit()), " s"),
         now);
  }
}

void CoordinatorCore::AdvanceStopping(Time now) {
  GiveUpLost(now);
  if (!AllGone(now)) return;
  // A shard is on its way from one server to another: neither could write its part.
  if (!first_.empty()) return;
  outcome_ = Outcome();
  if (failure_.empty() && outcome_ == v1::JOB_FAILED) {
    Fail(absl::StrCat("all workers were lost; the last was at clock ", LastClock()), now);
  }
  BeginSaving(now);
}

bool CoordinatorCore::Complete() const {
  if (!length_) return false;
  if (commits_sets_) return quorum_.next() >= length_->clocks();
  if (leases_ && !leases_->endless()) return leases_->over();
  uint64_t sum = 0;
  uint64_t low = UINT64_MAX;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    sum += ranks_[i].clock;
    low = std::min(low, ranks_[i].clock);
  }
  return length_->total_clocks() > 0 ? sum >= length_->total_clocks() : low >= length_->clocks();
}

v1::JobState CoordinatorCore::Outcome() const {
  if (!failure_.empty()) return v1::JOB_FAILED;
  if (Complete()) return v1::JOB_FINISHED;
  if (!stop_reason_.empty()) return v1::JOB_STOPPED;
  // Nobody asked for a stop: some have finished, others were lost and never came back.
  return ranks_.Count(RankState::kFinished) == 0 ? v1::JOB_FAILED : v1::JOB_FINISHED;
}

// ---- the last cut, and the end

// In sync mode all blocks stand at the clock of whoever is furthest. Otherwise a cut's clock is the
// mean, as the servers count; the last one comes after all others, whose blocks it may differ from.
uint64_t CoordinatorCore::LastClock() const {
  if (commits_sets_) return quorum_.next();
  uint64_t sum = 0;
  uint64_t high = 0;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    sum += ranks_[i].clock;
    high = std::max(high, ranks_[i].clock);
  }
  // A killed worker's last contribution can lie beyond the stop; its next life counts it.
  if (sync()) return std::min(stop_at_.value_or(high), high);
  const uint64_t mean = sum / ranks_.size();
  const std::optional<uint64_t> latest = cuts_.latest();
  return latest && *latest >= mean ? *latest + 1 : mean;
}

void CoordinatorCore::BeginSaving(Time now) {
  last_clock_ = LastClock();
  bool anything = false;
  for (uint32_t i = 0; i < ranks_.size(); ++i) anything |= ranks_[i].clock > 0;
  const bool saved = sync() && cuts_.newest() && *cuts_.newest() >= last_clock_;
  if (!began_ || aborted_ || !anything || saved) return BeginShutdown(now);
  phase_ = Phase::kSaving;
  deadline_ = now + FromSeconds(options_.job.limits().checkpoint_seconds());
  cuts_.BeginLast(last_clock_, now);
  if (!cuts_.Writing(last_clock_)) {
    commands_.push_back(SaveAll{saves_++, generation_, last_clock_, Owners(), deadline_});
  }
  WriteWholeCut();
}

void CoordinatorCore::AdvanceSaving(Time now) {
  if (cuts_.newest() && *cuts_.newest() >= last_clock_) return BeginShutdown(now);
  const std::string missing = MissingParts(last_clock_);
  const bool stuck = cuts_.HasAllShards(last_clock_) && !missing.empty();
  if (!aborted_ && !stuck && !cuts_.Failed(last_clock_) && now < deadline_) return;
  const std::string error = cuts_.ErrorOf(last_clock_);
  Fail(
      absl::StrCat("the last checkpoint, at clock ", last_clock_, ", could not be written",
                   missing.empty() ? "" : "; missing: ", missing, error.empty() ? "" : "; ", error),
      now);
  BeginShutdown(now);
}

void CoordinatorCore::BeginShutdown(Time now) {
  outcome_ = Outcome();
  phase_ = Phase::kShutdown;
  // Counted anew once the record is durable.
  deadline_ = now + start_limit() + kShutdownLimit;
  Event event{.name = "job_finished", .state = "failed", .message = failure_};
  if (outcome_ == v1::JOB_FINISHED) event.state = "finished";
  if (outcome_ == v1::JOB_STOPPED) {
    event.state = "stopped";
    event.message = stop_reason_;
  }
  event.clock = cuts_.newest();
  commands_.push_back(WriteRecord{Record(outcome_)});
  // They wait for the start, and hear that there is none.
  for (const uint32_t rank : ranks_.In({RankState::kRunning})) {
    if (!began_) waiting_leavers_.insert(rank);
  }
  Emit(std::move(event));
  commands_.push_back(ShutdownServers{kShutdownLimit});
}

}  // namespace leeway
