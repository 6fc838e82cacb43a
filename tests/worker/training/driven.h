// A clock runner, its carrier and its exchange as one object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "exchange/carriers/host_group_carrier.h"
#include "tests/catch.h"
#include "worker/training/clock_runner.h"

namespace leeway::testing {

class Driven {
 public:
  using Context = std::function<RunnerContext(Carrier&)>;
  static absl::StatusOr<std::unique_ptr<Driven>> Make(std::unique_ptr<Carrier> carrier,
                                                      const Context& context) {
    auto runner = MakeClockRunner(context(*carrier));
    if (!runner.ok()) return runner.status();
    return std::unique_ptr<Driven>(new Driven(std::move(carrier), *std::move(runner)));
  }
  static absl::StatusOr<std::unique_ptr<Driven>> Make(ParameterClient& client,
                                                      const Context& context) {
    return Make(MakeServerCarrier(client, nullptr), context);
  }

  absl::StatusOr<uint64_t> Begin(uint64_t clock) { return runner_->exchange().Begin(clock); }
  absl::StatusOr<ClockReport> Run(const ClockSpan& span) { return runner_->Run(span); }
  absl::Status Settle() { return runner_->exchange().Settle(); }
  bool Abandon() { return runner_->exchange().Abandon(); }
  void Drop(uint64_t clock) { runner_->exchange().Drop(clock); }
  absl::Status ReadLatest() { return runner_->exchange().ReadLatest(); }
  absl::StatusOr<std::string> SaveState() { return runner_->exchange().SaveState(); }
  absl::Status LoadState(const std::string& bytes) { return runner_->exchange().LoadState(bytes); }
  std::span<const float> weights() { return runner_->weights(); }

 private:
  Driven(std::unique_ptr<Carrier> carrier, std::unique_ptr<ClockRunner> runner)
      : carrier_(std::move(carrier)), runner_(std::move(runner)) {}

  const std::unique_ptr<Carrier> carrier_;
  const std::unique_ptr<ClockRunner> runner_;
};

}  // namespace leeway::testing
