#include "client/session/leased_batches.h"

#include <chrono>
#include <optional>
#include <vector>

#include "common/interval_set.h"
#include "common/mutex.h"
#include "common/status.h"
#include "tests/catch.h"

namespace leeway::leased_batches {
namespace {

// A coordinator that gives out this number of batches.
class Leasing {
 public:
  explicit Leasing(uint64_t batches) : batches_(batches) {}

  LeasedBatches::Coordinator Ask() {
    return {
        .ask = [this](const v1::LeaseDataRequest& request) -> absl::StatusOr<v1::LeaseDataReply> {
          MutexLock lock(mutex_);
          ++questions_;
          if (!error_.ok()) return error_;
          for (const v1::DoneRange& range : request.done()) {
            done_ += range.count();
            held_.Remove({range.first(), range.first() + range.count()});
          }
          for (const v1::DataRange& range : request.returned()) {
            for (uint64_t i = 0; i < range.count(); ++i) returned_.push_back(range.first() + i);
            held_.Remove({range.first(), range.first() + range.count()});
          }
          while (held_.size() < request.want() && next_ < batches_) {
            held_.Add({next_, next_ + 1});
            ++next_;
          }
          v1::LeaseDataReply reply;
          for (const Interval& run : held_.runs()) {
            v1::DataRange* range = reply.add_held();
            range->set_first(run.first);
            range->set_count(run.size());
          }
          reply.set_over(done_ == batches_);
          return reply;
        },
        .break_off = {}};
  }
  uint64_t questions() {
    MutexLock lock(mutex_);
    return questions_;
  }
  std::vector<uint64_t> returned() {
    MutexLock lock(mutex_);
    return returned_;
  }
  uint64_t held() {
    MutexLock lock(mutex_);
    return held_.size();
  }
  void Fail(const absl::Status& error) {
    MutexLock lock(mutex_);
    error_ = error;
  }

 private:
  Mutex mutex_;
  const uint64_t batches_;
  uint64_t questions_ GUARDED_BY(mutex_) = 0;
  uint64_t next_ GUARDED_BY(mutex_) = 0;
  uint64_t done_ GUARDED_BY(mutex_) = 0;
  IntervalSet held_ GUARDED_BY(mutex_);
  std::vector<uint64_t> returned_ GUARDED_BY(mutex_);
  absl::Status error_ GUARDED_BY(mutex_);
};

Time Later(Duration limit = std::chrono::seconds(60)) {
  return std::chrono::steady_clock::now() + limit;
}

// Waits as long as it takes.
absl::StatusOr<std::optional<uint64_t>> Next(LeasedBatches& batches, uint64_t clock) {
  std::optional<uint64_t> batch;
  RETURN_IF_ERROR(batches.Next(clock, Time::max(), batch).status());
  return batch;
}

TEST_CASE("leased: a worker alone is given every batch once, and hears when all are done") {
  Leasing coordinator(100);
  LeasedBatches batches(coordinator.Ask(), {});
  std::vector<uint64_t> taken;
  uint64_t step = 0;
  while (batches.Await(Later()).value() == LeasedBatches::State::kReady) {
    for (int i = 0; i < 2; ++i) {
      const auto batch = Next(batches, step++ / 2).value();
      if (batch) taken.push_back(*batch);
    }
    batches.Settle(step / 2);
  }
  CHECK(batches.Await(Later()).value() == LeasedBatches::State::kOver);
  REQUIRE(taken.size() == 100);
  for (uint64_t i = 0; i < 100; ++i) CHECK(taken[i] == i);
}

TEST_CASE("leased: where others have what is left the wait ends in time, and says so") {
  LeasedBatches batches(
      {.ask = [](const v1::LeaseDataRequest&) { return v1::LeaseDataReply(); }, .break_off = {}},
      {});
  CHECK(batches.Await(Later(std::chrono::milliseconds(1))).value() ==
        LeasedBatches::State::kWaiting);
  CHECK(Next(batches, 0).value() == std::nullopt);
  CHECK(batches.Waiting().empty());
}

TEST_CASE("leased: the coordinator's refusal is the step's error") {
  Leasing coordinator(1000);
  LeasedBatches batches(coordinator.Ask(), {});
  REQUIRE(batches.Await(Later()).value() == LeasedBatches::State::kReady);
  coordinator.Fail(absl::FailedPreconditionError("another generation"));
  absl::Status error;
  for (uint64_t step = 0; error.ok() && step < 1000; ++step) error = Next(batches, step).status();
  CHECK(absl::IsFailedPrecondition(error));
}

TEST_CASE("leased: of a clock whose batches have run out no other step asks") {
  constexpr uint64_t kSteps = 500;
  Leasing coordinator(3);
  LeasedBatches batches(coordinator.Ask(), {});
  uint64_t trained = 0;
  for (uint64_t step = 0; step < kSteps; ++step) {
    trained += Next(batches, 0).value().has_value() ? 1 : 0;
  }
  CHECK(trained == 3);
  CHECK(coordinator.questions() < 10);
  batches.Settle(1);
  CHECK(batches.Await(Later()).value() == LeasedBatches::State::kOver);
}

TEST_CASE("leased: a batch is waited for until a deadline, and then again") {
  Mutex mutex;
  CondVar changed;
  bool answers = false;
  LeasedBatches batches({.ask =
                             [&](const v1::LeaseDataRequest&) {
                               MutexLock lock(mutex);
                               while (!answers) changed.Wait(mutex);
                               v1::LeaseDataReply reply;
                               v1::DataRange* range = reply.add_held();
                               range->set_first(7);
                               range->set_count(1);
                               return absl::StatusOr<v1::LeaseDataReply>(reply);
                             },
                         .break_off = {}},
                        {});
  std::optional<uint64_t> batch;
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(batches.Next(0, Later(std::chrono::milliseconds(1)), batch).value());
    CHECK(batch == std::nullopt);
  }
  {
    MutexLock lock(mutex);
    answers = true;
    changed.NotifyAll();
  }
  CHECK(batches.Next(0, Later(), batch).value());
  CHECK(batch == 7);
}

TEST_CASE("leased: a worker holds no more than it makes steps for, and what is dropped goes back") {
  Leasing coordinator(1000);
  constexpr uint64_t kClocks = 10, kSteps = 3;
  LeasedBatches batches(coordinator.Ask(), {.all = kClocks * kSteps - 1, .of_clock = kSteps});
  batches.GoOnAt(kClocks - 2);
  std::vector<uint64_t> taken;
  for (uint64_t step = 0; step < kSteps; ++step) {
    taken.push_back(Next(batches, kClocks - 2).value().value());
  }
  batches.Settle(kClocks - 2, /*dropped=*/true);
  batches.Flush();
  CHECK(coordinator.returned() == taken);
  // The last clock is a step shorter.
  CHECK(Next(batches, kClocks - 1).value().has_value());
  CHECK(Next(batches, kClocks - 1).value().has_value());
  CHECK_FALSE(Next(batches, kClocks - 1).value().has_value());
  batches.Flush();
  CHECK(coordinator.held() == 2);
}

TEST_CASE("leased: a question that nobody answers is broken off at the end") {
  Mutex mutex;
  CondVar changed;
  bool asked = false, broken = false;
  {
    LeasedBatches batches(
        {.ask =
             [&](const v1::LeaseDataRequest&) {
               MutexLock lock(mutex);
               asked = true;
               changed.NotifyAll();
               while (!broken) changed.Wait(mutex);
               return absl::StatusOr<v1::LeaseDataReply>(absl::CancelledError("broken off"));
             },
         .break_off =
             [&] {
               MutexLock lock(mutex);
               broken = true;
               changed.NotifyAll();
             }},
        {});
    MutexLock lock(mutex);
    while (!asked) changed.Wait(mutex);
  }
  CHECK(broken);
}

}  // namespace
}  // namespace leeway::leased_batches
