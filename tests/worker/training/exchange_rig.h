// An exchange with fake steps, which are plain arithmetic, and fake servers.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>

#include "client/calls/parameter_client.h"
#include "common/codec/plan.h"
#include "common/status.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/exchange/small_schema.h"
#include "tests/worker/training/driven.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/training/clock_runner.h"

namespace leeway::testing {

// Five trained elements in two tensors, and an averaged one.
inline constexpr uint64_t kTrained = 5;
inline constexpr uint64_t kTotal = 6;
inline constexpr double kMomentum = 0.1;

inline v1::ModelSchema Schema() {
  return SmallSchema(
      {{"dense_0/weight", 3}, {"dense_0/bias", 2}, {"batch_norm_1/mean", 1, kMomentum}});
}

// Steps by arithmetic: the gradient of step t is g(t) in every element, of n(t) examples, and the
// batch's own statistic is s(t).
class FakeSteps : public StepRunner {
 public:
  std::function<float(uint64_t)> gradient = [](uint64_t step) {
    return static_cast<float>(step + 1);
  };
  std::function<uint64_t(uint64_t)> examples = [](uint64_t) { return 2; };
  std::function<float(uint64_t)> statistic = [](uint64_t) { return 1.0f; };
  double loss = 3;
  // A gradient is infinite if the loss is multiplied by more than this.
  float scale_max = std::numeric_limits<float>::infinity();
  // By step: what the loss was multiplied by.
  std::vector<float> scales;
  // From this step on there are no batches.
  uint64_t left = std::numeric_limits<uint64_t>::max();

  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override {
    const auto& [weights, contribution, home, loss_scale] = vectors;
    const ElementRange all[] = {{0, kTotal}};
    RETURN_IF_ERROR(observer.BeforeForward(all));
    seen[step] = {weights.begin(), weights.end()};
    const uint64_t n = examples(step);
    for (size_t i = 0; i < kTrained; ++i) contribution[i] = n > 0 ? gradient(step) : 0;
    scales.push_back(loss_scale);
    if (n > 0 && loss_scale > scale_max) contribution[kTrained - 1] = -INFINITY;
    contribution[kTrained] = n > 0 ? statistic(step) : 0;
    const double loss_sum = loss * static_cast<double>(n);
    RETURN_IF_ERROR(observer.AfterForward(loss_sum, n));
    RETURN_IF_ERROR(observer.OnFinal(all, false));
    return StepResult{.loss_sum = loss_sum,
                      .examples = n,
                      .data_seconds = 0.25,
                      .compute_seconds = 0.5,
                      .forward_seconds = 0.125,
                      .backward_seconds = 0.375,
                      .none_left = step >= left};
  }

  // By step: the weights that it saw.
  std::map<uint64_t, std::vector<float>> seen;
};

class Notes : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    begun.push_back(clock);
    return clock < end ? absl::OkStatus() : absl::CancelledError("the end");
  }
  void OnComplete(const ExchangeReport& report) override { complete.push_back(report); }

  uint64_t end = std::numeric_limits<uint64_t>::max();
  std::vector<uint64_t> begun;
  std::vector<ExchangeReport> complete;
};

struct Rig {
  // `compresses`: contributions are compressed, so there is a residual.
  explicit Rig(const v1::Exchange& exchange, bool compresses = false) {
    *job.mutable_exchange() = exchange;
    job.mutable_update()->mutable_sgd();
    job.mutable_update()->set_learning_rate(0.5);
    job.mutable_data()->set_batch_size(2);
    const bool elastic = exchange.has_elastic();
    model =
        std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 1, 4), elastic,
                                    static_cast<float>(elastic ? exchange.elastic().alpha() : 0));
    length.set_steps_per_epoch(100);
    length.set_steps(100);
    length.set_clocks(100);
    length.set_steps_per_clock(1);
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.rank = 2;
    options.total = kTotal;
    options.block_elements = 4;
    if (compresses) {
      job.mutable_compression()->mutable_contributions()->mutable_sign();
      job.mutable_compression()->mutable_weights()->mutable_none();
      options.codecs = *CodecPlan::Of(job, schema, model->layout());
    }
    client = *ParameterClient::Open(options, testing::Reach(model));
  }

  // Makes an exchange, which lives as long as the rig and outlives the client: calls may use its
  // vectors until the client ends.
  Driven* Make() {
    auto made = Driven::Make(*client, [&](Carrier& carrier) -> RunnerContext {
      return {.job = job,
              .schema = schema,
              .length = length,
              .rank = 2,
              .carrier = carrier,
              .backend = *backend,
              .steps = steps,
              .listener = notes,
              .loss_scales = loss_scales,
              .report_loss_scale = [this](const v1::LossScale& scale) {
                sent_before_reports.push_back(model->requests().size());
                reported.push_back(scale);
                return report_status;
              }};
    });
    REQUIRE(made.ok());
    exchanges.push_back(*std::move(made));
    return exchanges.back().get();
  }

  v1::TrainingJob job;
  v1::ModelSchema schema = Schema();
  v1::JobLength length;
  std::unique_ptr<Backend> backend = *EigenBackend::Make(1);
  FakeSteps steps;
  Notes notes;
  // The loss scale that the coordinator knows, the reports of it, the number of requests to servers
  // before each report, and the answer to a report.
  std::vector<v1::LossScale> loss_scales;
  std::vector<v1::LossScale> reported;
  std::vector<size_t> sent_before_reports;
  absl::Status report_status;
  std::shared_ptr<FakeModel> model;
  std::vector<std::unique_ptr<Driven>> exchanges;
  std::unique_ptr<ParameterClient> client;
};

inline v1::Update Sgd(double learning_rate, double momentum = 0) {
  v1::Update update;
  update.mutable_sgd()->set_momentum(momentum);
  update.set_learning_rate(learning_rate);
  return update;
}

inline v1::Exchange Gradient(uint32_t accumulation) {
  v1::Exchange exchange;
  exchange.mutable_gradient()->set_accumulation(accumulation);
  return exchange;
}
inline v1::Exchange Delta(const v1::Update& optimizer) {
  v1::Exchange exchange;
  exchange.mutable_delta()->set_local_steps(3);
  *exchange.mutable_delta()->mutable_optimizer() = optimizer;
  return exchange;
}
inline v1::Exchange Elastic(double alpha, const v1::Update& optimizer) {
  v1::Exchange exchange;
  exchange.mutable_elastic()->set_alpha(alpha);
  exchange.mutable_elastic()->set_every(2);
  *exchange.mutable_elastic()->mutable_optimizer() = optimizer;
  return exchange;
}

// Returns what was last sent for the block: elements 0 to 3 for block 0.
inline std::vector<float> LastPushed(const FakeModel& model, uint32_t block) {
  std::vector<float> values;
  for (const auto& request : model.requests()) {
    if (request.header.block() == block && request.method == "PushPull") values = request.values;
  }
  return values;
}
inline uint64_t LastExamples(const FakeModel& model) {
  uint64_t examples = 0;
  for (const auto& request : model.requests()) {
    if (request.method == "PushPull") examples = request.header.examples();
  }
  return examples;
}

}  // namespace leeway::testing
