#include "library/job.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/buffer.h"
#include "common/counted.h"
#include "common/status.h"
#include "library/job_messages.h"
#include "library/registrar.h"
#include "library/schema.h"
#include "library/slow_call.h"

namespace leeway {
namespace {

v1::LeaveReason ReasonOf(Job::Reason reason) {
  switch (reason) {
    case Job::Reason::kFinished:
      return v1::LEAVE_FINISHED;
    case Job::Reason::kStopped:
      return v1::LEAVE_STOPPED;
    case Job::Reason::kFailed:
      break;
  }
  return v1::LEAVE_FAILED;
}

// Returns true if the worker must go on at another clock, because the others went on without it or
// the job has gone back.
bool IsMoved(const absl::Status& status) {
  return absl::IsAlreadyExists(status) || absl::IsFailedPrecondition(status);
}

// How often a worker that waits for a batch checks whether it must stop.
constexpr Duration kStopCheckEvery = std::chrono::milliseconds(200);

// While slow_ is pending, its background thread uses the registration (life_). At other times only
// the program's thread uses it.
class JoinedJob final : public Job {
 public:
  explicit JoinedJob(std::unique_ptr<Registrar> registrar) : registrar_(std::move(registrar)) {
    Connect();
  }
  ~JoinedJob() override {
    registrar_->Cancel();
    if (slow_.pending()) slow_.Await(Time::max()).IgnoreError();
  }

  const JobInfo& info() const override { return info_; }
  std::vector<JobTensor> tensors() const override { return TensorsOf(life_->reply.schema()); }
  std::span<float> weights() override { return weights_.span(); }
  std::span<float> contribution() override {
    return phase_ == Phase::kRunning ? life_->exchange->contribution() : std::span<float>();
  }
  uint64_t clock() const override { return takes_part() ? life_->participant->clock() : 0; }
  std::string Waiting() const override { return registrar_->Waiting(); }

  absl::StatusOr<bool> Joined(Time deadline) override { return AwaitSlow(deadline); }

  absl::StatusOr<Next> Begin(Time deadline) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "Begin"));
    while (true) {
      ASSIGN_OR_RETURN(const bool ready, AwaitSlow(deadline));
      if (!ready) return Next::kNotYet;
      absl::StatusOr<std::optional<Next>> next;
      if (detour_.ok()) {
        next = TryBegin(deadline);
      } else {
        next = Recover();
      }
      if (!next.ok()) {
        RETURN_IF_ERROR(TakeDetour(next.status()));
      } else if (next->has_value()) {
        return **next;
      }
    }
  }

  absl::StatusOr<bool> Wait(uint64_t first, uint64_t count, Time deadline) override {
    RETURN_IF_ERROR(Expect(Phase::kRunning, "Wait"));
    RETURN_IF_ERROR(CheckRange(first, count));
    return InClock([&] { return life_->exchange->Wait({{{first, count}}}, deadline); });
  }

  absl::StatusOr<bool> NextBatch(Time deadline, std::optional<uint64_t>& batch) override {
    batch.reset();
    RETURN_IF_ERROR(Expect(Phase::kRunning, "NextBatch"));
    LeasedBatches* leases = life_->participant->leases();
    if (leases == nullptr) {
      return absl::UnimplementedError(
          "the job does not lease batches (data.assignment): each worker chooses its own batches, "
          "from the seed, the clock and its rank");
    }
    asked_for_batch_ = true;
    return InClock([&] { return leases->Next(life_->participant->clock(), deadline, batch); });
  }

  std::vector<uint64_t> UpcomingBatches(size_t most) const override {
    const bool there = phase_ == Phase::kRunning && life_->participant->leases() != nullptr;
    return there ? life_->participant->leases()->Upcoming(most) : std::vector<uint64_t>();
  }

  absl::Status SetExamples(uint64_t examples) override {
    RETURN_IF_ERROR(Expect(Phase::kRunning, "SetExamples"));
    if (examples == 0)
      return absl::InvalidArgumentError("a contribution must have at least one example");
    life_->exchange->SetExamples(examples);
    return absl::OkStatus();
  }

  absl::Status SetRates(std::span<const JobRate> rates) override {
    RETURN_IF_ERROR(Expect(Phase::kRunning, "SetRates"));
    ASSIGN_OR_RETURN(ContributionRates parts, RatesFrom(rates, info_.trained));
    return life_->exchange->SetRates(std::move(parts));
  }

  absl::Status Final(uint64_t first, uint64_t count) override {
    RETURN_IF_ERROR(Expect(Phase::kRunning, "Final"));
    RETURN_IF_ERROR(CheckRange(first, count));
    return InClock([&]() -> absl::StatusOr<bool> {
             RETURN_IF_ERROR(life_->exchange->Final({{{first, count}}}, false));
             return true;
           })
        .status();
  }

  absl::StatusOr<bool> End(const ClockMeasures& measures, Time deadline) override {
    RETURN_IF_ERROR(Expect(Phase::kRunning, "End"));
    RETURN_IF_ERROR(CheckAskedForBatch());
    ASSIGN_OR_RETURN(const bool ended,
                     InClock([&] { return life_->exchange->End(measures.examples, deadline); }));
    if (!ended) return false;
    // If the others completed the clock meanwhile, it counts for nothing.
    if (detour_.ok()) {
      const Exchange& exchange = *life_->exchange;
      if (exchange.left_out()) {
        spdlog::warn("clock {}: left out of the update (exchange.on_bad_gradient): {}", clock(),
                     exchange.why());
      }
      life_->participant->Advance(MetricsFrom(measures, exchange));
    }
    phase_ = Phase::kBetween;
    state_.clear();
    return true;
  }

  absl::StatusOr<bool> Settle(Time deadline) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "Settle"));
    ASSIGN_OR_RETURN(const bool ready, AwaitSlow(deadline));
    if (!ready) return false;
    if (!takes_part()) return true;
    return InClock([&] { return life_->exchange->SettleUntil(deadline); });
  }

  absl::StatusOr<bool> ReadAgain(Time deadline, std::span<const float>& weights) override {
    ASSIGN_OR_RETURN(const bool settled, Settle(deadline));
    if (!settled) return false;
    if (read_.size() == 0) read_ = FloatBuffer(weights_.size());
    const bool reads = takes_part() && detour_.ok();
    if (reads) {
      ASSIGN_OR_RETURN(const bool read,
                       InClock([&] { return life_->exchange->ReadAgain(read_.span(), deadline); }));
      if (!read) return false;
    }
    // If the others went on, Begin will read the weights again, so the caller gets the current ones
    // and sees no difference.
    weights = reads && detour_.ok() ? read_.span() : weights_.span();
    return true;
  }

  absl::Status Evaluated(const JobEvaluation& evaluation) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "Evaluated"));
    if (!takes_part()) return absl::OkStatus();
    if (info_.rank != 0) return absl::InvalidArgumentError("only rank 0 reports evaluations");
    v1::EvaluationMetrics metrics;
    metrics.set_clock(life_->participant->clock());
    metrics.set_epoch(life_->participant->Epoch());
    metrics.set_test_loss(evaluation.loss);
    if (evaluation.accuracy) metrics.set_test_accuracy(*evaluation.accuracy);
    metrics.set_examples(evaluation.examples);
    if (life_->reply.job().evaluation().has_early_stop()) return life_->session.ReportNow(metrics);
    life_->session.Report(metrics);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> StateWanted() override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "StateWanted"));
    if (!takes_part() || !detour_.ok() || !life_->participant->keeps_state()) return false;
    const Participant& participant = *life_->participant;
    return CutIsDue() || participant.MadeAll() || !participant.IsOpen();
  }

  absl::Status SaveState(std::string bytes) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "SaveState"));
    state_ = std::move(bytes);
    keeps_state_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> LoadState() override {
    if (phase_ == Phase::kJoining || slow_.pending()) return Expect(Phase::kBetween, "LoadState");
    auto loaded = takes_part() ? life_->exchange->TakeLoaded() : std::optional<std::string>();
    if (!loaded)
      return absl::NotFoundError(
          "there is no saved state of this worker: the job was not resumed, or its checkpoint has "
          "none");
    return *std::move(loaded);
  }

  absl::StatusOr<bool> Leave(Reason reason, const std::string& message, Time deadline) override {
    if (phase_ == Phase::kLeft) return true;
    if (phase_ != Phase::kLeaving) {
      const auto ready = AwaitSlow(deadline);
      if (ready.ok() && !*ready) return false;
      if (reason != Reason::kFailed) RETURN_IF_ERROR(Expect(Phase::kBetween, "Leave"));
      phase_ = Phase::kLeaving;
      slow_.Start([this, reason, message]() -> absl::Status {
        RETURN_IF_ERROR(SayLeave(reason, message));
        if (reason != Reason::kFailed) registrar_->AwaitEnd();
        return absl::OkStatus();
      });
    }
    return FinishLeaving(deadline);
  }

 private:
  enum class Phase { kJoining, kBetween, kRunning, kLeaving, kLeft };

  // Returns true if the job is not over for this worker.
  bool takes_part() const { return life_ != nullptr && life_->participant != nullptr; }

  absl::Status Expect(Phase phase, const char* what) const {
    if (phase_ == phase) return absl::OkStatus();
    static constexpr const char* kWhere[] = {"while it joins", "between two clocks",
                                             "while a clock runs", "while it leaves",
                                             "after it has left"};
    return absl::UnimplementedError(absl::StrCat(what, " may be called ",
                                                 kWhere[static_cast<int>(phase)], ", not ",
                                                 kWhere[static_cast<int>(phase_)]));
  }

  absl::Status CheckRange(uint64_t first, uint64_t count) const {
    if (count <= weights_.size() && first <= weights_.size() - count) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(Counted(count, "element"), " from element ",
                                                   first, " are not all in the model, which has ",
                                                   Counted(weights_.size(), "element")));
  }

  // Without a batch in each clock the job's batches would never be done.
  absl::Status CheckAskedForBatch() const {
    if (asked_for_batch_ || life_->participant->leases() == nullptr) return absl::OkStatus();
    return absl::UnimplementedError(
        "the job leases its batches (data.assignment), but this clock has not asked for a batch: "
        "take the batches from leeway_next_batch, or in Python from job.batches");
  }

  absl::StatusOr<bool> AwaitSlow(Time deadline) {
    if (!slow_.pending()) {
      RETURN_IF_ERROR(failed_);
      return true;
    }
    const auto done = slow_.Await(deadline);
    if (!done.ok()) {
      if (phase_ != Phase::kJoining) RETURN_IF_ERROR(TakeDetour(done.status()));
      if (phase_ == Phase::kJoining) return failed_ = done.status();
      return true;
    }
    if (*done && life_ != nullptr) info_ = InfoFrom(life_->reply);
    if (*done && phase_ == Phase::kJoining) phase_ = Phase::kBetween;
    if (*done) saved_at_ = clock();
    return done;
  }

  // Starts a new registration in the background.
  void Connect() {
    slow_.Start([this] {
      registrar_->Forget();
      life_.reset();
      auto registered = registrar_->Register(weights_);
      if (registered.ok()) life_ = *std::move(registered);
      // The registrar has already tried again as long as that made sense, so this error is final
      // for this life.
      const absl::Status status = registered.status();
      return IsMoved(status) ? absl::UnavailableError(status.message()) : status;
    });
  }

  // Handles an error of the exchange. If other workers or a stop have ended the clock, notes the
  // error in detour_ and returns OK; nothing that is computed counts then until the next Begin
  // recovers. Returns any other error, which is final.
  absl::Status TakeDetour(const absl::Status& status) {
    absl::Status why = status;
    const bool broken_off = absl::IsCancelled(status) && takes_part();
    // The clock was ended by a stop, or by the coordinator's refusal of this life of the worker.
    if (broken_off) {
      const absl::Status refused =
          life_->participant->UnlessStopped([&] { return status; }).status();
      if (!refused.ok()) why = refused;
    }
    const bool stopped = broken_off && absl::IsCancelled(why);
    if (!stopped && !IsMoved(why)) return failed_ = why;
    detour_ = why;
    return absl::OkStatus();
  }

  absl::StatusOr<bool> InClock(const std::function<absl::StatusOr<bool>()>& work) {
    if (!detour_.ok()) return true;
    auto result = work();
    if (result.ok()) return result;
    RETURN_IF_ERROR(TakeDetour(result.status()));
    return true;
  }

  // Recovers from detour_. Returns kStopped if a stop has ended the clock. Otherwise returns
  // nothing, and starts the recovery in slow_: a new registration if the job has gone back to a
  // checkpoint, or else the way to another clock with the same registration.
  std::optional<Next> Recover() {
    const absl::Status why = std::exchange(detour_, absl::OkStatus());
    if (absl::IsCancelled(why)) {
      // The clock is taken back so that the program saves its state for the same clock as the other
      // workers.
      life_->participant->TakeBackClock();
      return Next::kStopped;
    }
    finished_ = false;
    if (absl::IsFailedPrecondition(why)) {
      spdlog::warn("{}", std::string(why.message()));
      Connect();
    } else {
      slow_.Start([this, why] { return life_->participant->Rejoin(why); });
    }
    return std::nullopt;
  }

  // Returns nothing if slow_ must first finish its work in the background.
  absl::StatusOr<std::optional<Next>> TryBegin(Time deadline) {
    if (!takes_part() || finished_) return Next::kFinished;
    Participant& participant = *life_->participant;
    if (keeps_state_ && !participant.keeps_state()) {
      slow_.Start([this] { return life_->participant->KeepState(); });
      return std::nullopt;
    }
    const bool asks = CutIsDue() || participant.IsToAskWhereToStop();
    const bool needs_batch = participant.IsOpen() && !participant.HasBatch();
    if (asks || needs_batch || participant.MadeAll() || participant.NearlyMadeAll() ||
        !participant.IsOpen()) {
      ASSIGN_OR_RETURN(const bool settled, life_->exchange->SettleUntil(deadline));
      if (!settled) return Next::kNotYet;
    }
    if (asks) {
      slow_.Start([this] { return SaveAndAsk(); });
      return std::nullopt;
    }
    if (needs_batch) {
      const Time soon = std::min(deadline, std::chrono::steady_clock::now() + kStopCheckEvery);
      ASSIGN_OR_RETURN(const bool waited, participant.AwaitBatch(soon));
      if (!waited) return soon < deadline ? std::nullopt : std::optional(Next::kNotYet);
    }
    if (participant.MadeAll()) {
      slow_.Start([this] {
        finished_ = true;
        return life_->exchange->ReadLatest();
      });
      return std::nullopt;
    }
    if (!participant.IsOpen()) return Next::kStopped;
    asked_for_batch_ = false;
    life_->exchange->StartClock(participant.clock());
    phase_ = Phase::kRunning;
    return Next::kClock;
  }

  bool CutIsDue() const {
    return life_->participant->AtCut() && saved_at_ != life_->participant->clock();
  }

  absl::Status SaveAndAsk() {
    life_->exchange->Keep(state_);
    RETURN_IF_ERROR(life_->participant->SaveAtCut());
    return life_->participant->AskWhereToStop();
  }

  absl::Status SayLeave(Reason reason, const std::string& message) {
    if (takes_part()) {
      life_->exchange->Keep(state_);
      life_->participant->ReportDone();
      if (reason != Reason::kFailed) RETURN_IF_ERROR(life_->participant->SaveState());
      return life_->session.Leave(ReasonOf(reason), life_->participant->completed(), message);
    }
    // This life has nothing to report: an earlier life has reported everything, or the job is over.
    const bool told = life_ != nullptr && life_->reply.has_left_at();
    if (!told || reason == Reason::kFailed) return absl::OkStatus();
    return life_->session.Leave(v1::LEAVE_STOPPED, life_->reply.left_at(), "");
  }

  absl::StatusOr<bool> FinishLeaving(Time deadline) {
    auto done = slow_.Await(deadline);
    if (done.ok()) {
      if (*done) phase_ = Phase::kLeft;
      return done;
    }
    phase_ = Phase::kBetween;
    detour_ = IsMoved(done.status()) ? done.status() : absl::OkStatus();
    return done;
  }

  const std::unique_ptr<Registrar> registrar_;
  FloatBuffer weights_;
  // The memory that ReadAgain returns.
  FloatBuffer read_;
  std::unique_ptr<Registration> life_;
  JobInfo info_;
  Phase phase_ = Phase::kJoining;
  // detour_ is the reason why the current clock counts for nothing. failed_ is the reason why the
  // worker cannot go on.
  absl::Status detour_, failed_;
  // Whether the current clock has asked for a batch.
  bool asked_for_batch_ = false;
  // Whether all clocks are done and weights_ has the final weights.
  bool finished_ = false;
  // The clock at which the worker last joined, went back or saved its state. It saves no other
  // state at that clock.
  std::optional<uint64_t> saved_at_;
  // The program's state as it was last loaded or saved, and whether the program saves any state.
  std::string state_;
  bool keeps_state_ = false;
  SlowCall slow_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Join(JobOptions options) {
  ASSIGN_OR_RETURN(auto registrar, Registrar::Make(std::move(options)));
  return std::make_unique<JoinedJob>(std::move(registrar));
}

}  // namespace leeway
