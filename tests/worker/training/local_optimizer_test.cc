// A worker's own optimizer computes what the servers' rule would, including factors and scaling.
#include "worker/training/local_optimizer.h"

#include <algorithm>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>

#include "common/philox.h"
#include "common/update/apply.h"
#include "common/update/factors.h"
#include "tests/catch.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::local_optimizer {
namespace {

constexpr uint64_t kTrained = 90, kTotal = 100;
constexpr uint32_t kWorkers = 4;

v1::ModelSchema Schema() {
  v1::ModelSchema schema;
  const auto add = [&schema](v1::TensorKind kind, uint64_t elements) {
    v1::TensorSpec& tensor = *schema.add_tensors();
    tensor.set_kind(kind);
    tensor.add_shape(elements);
    tensor.set_offset(schema.total());
    schema.set_total(schema.total() + elements);
  };
  add(v1::TENSOR_KIND_WEIGHT, 61);
  add(v1::TENSOR_KIND_BIAS, 9);
  add(v1::TENSOR_KIND_NORM, 20);
  schema.set_trained(schema.total());
  add(v1::TENSOR_KIND_NORM, kTotal - kTrained);
  schema.mutable_tensors(3)->set_momentum(0.1);
  return schema;
}

v1::JobLength Length() {
  v1::JobLength length;
  length.set_steps(100);
  length.set_clocks(100);
  length.set_steps_per_clock(1);
  length.set_steps_per_epoch(10);
  return length;
}

std::vector<float> Draw(uint64_t key) {
  RandomStream stream(5, RandomPurpose::kInitialize, {key});
  std::vector<float> values(kTotal);
  for (float& value : values) value = static_cast<float>(stream.Normal());
  return values;
}

// The weights and slots after some steps.
struct State {
  std::vector<float> weights = Draw(0);
  std::vector<std::vector<float>> slots;
  std::vector<float*> places() {
    std::vector<float*> all;
    for (std::vector<float>& slot : slots) all.push_back(slot.data());
    return all;
  }
};

constexpr uint64_t kSteps = 5;

absl::StatusOr<LocalOptimizer> OptimizerOf(const v1::Update& update) {
  v1::TrainingJob job;
  *job.mutable_exchange()->mutable_delta()->mutable_optimizer() = update;
  job.mutable_workers()->set_count(kWorkers);
  return LocalOptimizer::Make(job, Schema(), Length());
}

State Locally(const v1::Update& update) {
  const auto backend = *EigenBackend::Make(1);
  const auto optimizer = OptimizerOf(update);
  REQUIRE(optimizer.ok());
  State state;
  state.slots.assign(optimizer->slots().size(), std::vector<float>(kTotal));
  for (uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = Draw(step + 1);
    const auto averages = LocalAverages(Schema(), 0);
    VectorUpdate work = optimizer->UpdateOf(step, step + 1, gradient, averages, state.weights);
    work.slots = state.places();
    float finite = 0;
    backend->Update(work, &finite);
    REQUIRE(finite == 1.0f);
  }
  return state;
}

// Computes block by block, as servers do.
State OnServers(const v1::Update& update) {
  constexpr uint64_t kBlock = 32;
  const auto rule = *MakeUpdateRule(update);
  const auto parts = UpdatePartsOf(Schema(), update);
  const Schedule schedule = Schedule::OverClocks(update, Length(), kWorkers);
  State state;
  state.slots.assign(rule->slots().size(), std::vector<float>(kTotal));
  for (uint64_t step = 0; step < kSteps; ++step) {
    const std::vector<float> gradient = Draw(step + 1);
    for (uint64_t begin = 0; begin < kTrained; begin += kBlock) {
      const uint64_t count = std::min(kBlock, kTrained - begin);
      const FloatPayload payload = FloatPayload::Of({gradient.data() + begin, count});
      const FloatPayload* const contributions[] = {&payload};
      const float coefficients[] = {1.0f};
      const auto here = PartsWithin(parts, {begin, count});
      std::vector<float*> slots = state.places();
      for (float*& slot : slots) slot += begin;
      const std::vector<const float*> in(slots.begin(), slots.end());
      REQUIRE(ApplyUpdate({.rule = rule.get(),
                           .step = {schedule.LearningRate(step), step + 1},
                           .contributions = contributions,
                           .coefficients = coefficients,
                           .count = count,
                           .trained = count,
                           .parts = here,
                           .weights_in = state.weights.data() + begin,
                           .weights_out = state.weights.data() + begin,
                           .slots_in = in,
                           .slots_out = slots}));
    }
  }
  return state;
}

TEST_CASE("a local optimizer has the bits of the servers' rule, with factors and scaling, too") {
  const std::string extras =
      " learning_rate: 0.02 scaling: RATE_SCALING_LINEAR schedule { constant {} warm_up { clocks: "
      "3 } } factors { biases { weight_decay: 0 learning_rate: 2 } norms { weight_decay: 0 } }";
  for (const std::string rule :
       {"sgd { weight_decay: 0.1 }", "sgd { momentum: 0.9 nesterov: true weight_decay: 0.1 }",
        "adagrad { weight_decay: 0.1 }", "adam { weight_decay: 0.1 }",
        "adamw { weight_decay: 0.1 }", "lion { weight_decay: 0.1 }"}) {
    v1::Update update, plain;
    REQUIRE(google::protobuf::TextFormat::ParseFromString(rule + extras, &update));
    REQUIRE(google::protobuf::TextFormat::ParseFromString(rule + " learning_rate: 0.02", &plain));
    CAPTURE(rule);
    State local = Locally(update), servers = OnServers(update);
    // The rule does not apply to averaged elements.
    local.weights.resize(kTrained);
    servers.weights.resize(kTrained);
    CHECK(local.weights == servers.weights);
    CHECK(local.slots == servers.slots);
    State without = Locally(plain);
    without.weights.resize(kTrained);
    CHECK_FALSE(without.weights == local.weights);
  }
}

TEST_CASE("a local optimizer says the scaled rate of each step") {
  v1::Update update;
  update.mutable_sgd();
  update.set_learning_rate(0.5);
  update.set_scaling(v1::RATE_SCALING_SQUARE_ROOT);
  update.mutable_schedule()->mutable_warm_up()->set_clocks(2);
  const auto optimizer = OptimizerOf(update);
  REQUIRE(optimizer.ok());
  CHECK(optimizer->LearningRate(0) == 0.5f);
  CHECK(optimizer->LearningRate(1) == 0.75f);
  CHECK(optimizer->LearningRate(2) == 1.0f);
}

}  // namespace
}  // namespace leeway::local_optimizer
