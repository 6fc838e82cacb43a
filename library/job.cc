#include "library/job.h"

#include <functional>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "client/participant/slow_call.h"
#include "common/buffer.h"
#include "common/counted.h"
#include "common/status.h"
#include "library/job_messages.h"
#include "library/registrar.h"
#include "library/schema.h"

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
  uint64_t clock() const override { return takes_part() ? life_->loop->clock() : 0; }
  std::string Waiting() const override { return registrar_->Waiting(); }

  absl::StatusOr<bool> Joined(Time deadline) override { return AwaitSlow(deadline); }

  absl::StatusOr<Next> Begin(Time deadline) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "Begin"));
    while (true) {
      ASSIGN_OR_RETURN(const bool ready, AwaitSlow(deadline));
      if (!ready) return Next::kNotYet;
      if (!takes_part()) return Next::kFinished;
      ClockLoop& loop = *life_->loop;
      if (keeps_state_) loop.KeepState();
      const auto next = loop.Begin(deadline);
      if (IsMoved(next.status())) {
        spdlog::warn("{}", std::string(next.status().message()));
        Connect();
        continue;
      }
      RETURN_IF_ERROR(next.status());
      if (*next != ClockLoop::Next::kMoved) return Started(*next);
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
    return InClock([&] { return leases->Next(life_->loop->clock(), deadline, batch); });
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
    const Exchange& exchange = *life_->exchange;
    if (!life_->loop->broken_off() && exchange.left_out()) {
      spdlog::warn("clock {}: left out of the update (exchange.on_bad_gradient): {}", clock(),
                   exchange.why());
    }
    life_->loop->End(MetricsFrom(measures, exchange));
    phase_ = Phase::kBetween;
    life_->exchange->Keep("");
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
    const bool reads = takes_part() && !life_->loop->broken_off();
    if (reads) {
      ASSIGN_OR_RETURN(const bool read,
                       InClock([&] { return life_->exchange->ReadAgain(read_.span(), deadline); }));
      if (!read) return false;
    }
    // If the other workers have gone on, Begin will read the weights again. Until then the caller
    // keeps the weights that it has.
    weights = reads && !life_->loop->broken_off() ? read_.span() : weights_.span();
    return true;
  }

  absl::Status Evaluated(const JobEvaluation& evaluation) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "Evaluated"));
    if (!takes_part()) return absl::OkStatus();
    if (info_.rank != 0) return absl::InvalidArgumentError("only rank 0 reports evaluations");
    v1::EvaluationMetrics metrics;
    metrics.set_clock(life_->loop->clock());
    metrics.set_epoch(life_->loop->Epoch());
    metrics.set_test_loss(evaluation.loss);
    if (evaluation.accuracy) metrics.set_test_accuracy(*evaluation.accuracy);
    metrics.set_examples(evaluation.examples);
    if (life_->reply.job().evaluation().has_early_stop()) return life_->session.ReportNow(metrics);
    life_->session.Report(metrics);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> StateWanted() override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "StateWanted"));
    // Begin has not returned a clock yet. The next call of Begin asks again for the states and
    // evaluations that are due.
    ASSIGN_OR_RETURN(const bool ready, AwaitSlow(std::chrono::steady_clock::now()));
    if (!ready) return false;
    return takes_part() && life_->loop->IsStateDue();
  }

  absl::Status SaveState(std::string bytes) override {
    RETURN_IF_ERROR(Expect(Phase::kBetween, "SaveState"));
    ASSIGN_OR_RETURN(const bool ready, AwaitSlow(std::chrono::steady_clock::now()));
    if (!ready) {
      return absl::UnimplementedError("SaveState may not be called while Begin is in progress");
    }
    if (takes_part()) life_->exchange->Keep(std::move(bytes));
    keeps_state_ = true;
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> LoadState() override {
    if (phase_ == Phase::kJoining) return Expect(Phase::kBetween, "LoadState");
    ASSIGN_OR_RETURN(const bool ready, AwaitSlow(std::chrono::steady_clock::now()));
    if (!ready) {
      return absl::UnimplementedError("LoadState may not be called while Begin is in progress");
    }
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
  bool takes_part() const { return life_ != nullptr && life_->loop != nullptr; }

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

  // Checks that the program has asked for a batch in this clock. Otherwise the job's batches would
  // never be done.
  absl::Status CheckAskedForBatch() const {
    if (asked_for_batch_ || life_->participant->leases() == nullptr) return absl::OkStatus();
    return absl::UnimplementedError(
        "the job leases its batches (data.assignment), but this clock has not asked for a batch: "
        "take the batches from leeway_next_batch, or in Python from job.batches");
  }

  // Waits for the work in the background: a registration, or the work between two clocks.
  absl::StatusOr<bool> AwaitSlow(Time deadline) {
    RETURN_IF_ERROR(failed_);
    if (!slow_.pending()) return takes_part() ? life_->loop->AwaitBackground(deadline) : true;
    const auto done = slow_.Await(deadline);
    if (!done.ok()) return failed_ = done.status();
    if (!*done) return false;
    info_ = InfoFrom(life_->reply);
    if (phase_ == Phase::kJoining) phase_ = Phase::kBetween;
    return true;
  }

  // Starts a new registration in the background.
  void Connect() {
    slow_.Start([this] {
      registrar_->Forget();
      life_.reset();
      auto registered = registrar_->Register(weights_);
      if (registered.ok()) life_ = *std::move(registered);
      // The registrar has already retried as long as a retry could succeed, so this error is final
      // for this life.
      const absl::Status status = registered.status();
      return IsMoved(status) ? absl::UnavailableError(status.message()) : status;
    });
  }

  absl::StatusOr<bool> InClock(const std::function<absl::StatusOr<bool>()>& work) {
    if (life_->loop->broken_off()) return true;
    auto result = work();
    if (result.ok()) return result;
    RETURN_IF_ERROR(life_->loop->BreakOff(result.status()));
    return true;
  }

  Next Started(ClockLoop::Next next) {
    if (next == ClockLoop::Next::kFinished) return Next::kFinished;
    if (next == ClockLoop::Next::kStopped) return Next::kStopped;
    if (next == ClockLoop::Next::kNotYet) return Next::kNotYet;
    asked_for_batch_ = false;
    life_->exchange->StartClock(clock());
    phase_ = Phase::kRunning;
    return Next::kClock;
  }

  absl::Status SayLeave(Reason reason, const std::string& message) {
    if (takes_part()) {
      life_->participant->ReportDone();
      if (reason != Reason::kFailed) RETURN_IF_ERROR(life_->loop->SaveState());
      return life_->session.Leave(ReasonOf(reason), life_->loop->completed(), message);
    }
    // True if an earlier life has reported everything, or if the job is over. This life then has
    // nothing to report.
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
    if (IsMoved(done.status())) {
      takes_part() ? life_->loop->BreakOff(done.status()).IgnoreError() : Connect();
    }
    return done;
  }

  const std::unique_ptr<Registrar> registrar_;
  FloatBuffer weights_;
  // The memory that ReadAgain returns.
  FloatBuffer read_;
  std::unique_ptr<Registration> life_;
  JobInfo info_;
  Phase phase_ = Phase::kJoining;
  // Why the worker could not register.
  absl::Status failed_;
  // True if the current clock has asked for a batch.
  bool asked_for_batch_ = false;
  // True if the program saves a state.
  bool keeps_state_ = false;
  SlowCall slow_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Job>> Job::Join(JobOptions options) {
  ASSIGN_OR_RETURN(auto registrar, Registrar::Make(std::move(options)));
  return std::make_unique<JoinedJob>(std::move(registrar));
}

}  // namespace leeway
