// Batches of mixed examples: each example has two labels, and its loss is a weighted sum of both
// labels' losses.
#include "tests/worker/model/support.h"

namespace leeway::testing::mixup {
namespace {

struct Kind {
  std::string head;
  uint32_t classes = 0;
};

const Kind kSoftmax{"layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY", 3};

constexpr ImageShape kRow{1, 1, 5};

std::unique_ptr<Model> Built(const Kind& kind, Backend& backend, bool mixed = true) {
  const std::string text = "layers { dense { units: 4 } } layers { tanh {} } " + kind.head;
  auto model = Model::Build(ParseModel(text), kRow, kind.classes, backend, 1, mixed);
  INFO(model.status());
  REQUIRE(model.ok());
  return *std::move(model);
}

Batch MixedBatch(const Kind& kind, size_t size, uint64_t seed) {
  const uint32_t classes = std::max(kind.classes, 2u);
  Batch batch = RandomBatch(size, kRow.elements(), classes, seed);
  batch.other_labels = RandomBatch(size, 1, classes, seed + 5).labels;
  batch.share = 0.7f;
  return batch;
}

// Returns the batch with only one of its two labels.
Batch Unmixed(Batch batch, bool other) {
  if (other) batch.labels = batch.other_labels;
  batch.other_labels.clear();
  batch.share = 1;
  return batch;
}

TEST_CASE("a mixed batch's loss and gradient are shares of those by either label") {
  const Kind kind = GENERATE(
      Kind(kSoftmax),
      Kind{"layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY label_smoothing: 0.2",
           3},
      Kind{"layers { dense { units: 1 } } loss: LOSS_LOGISTIC", 2},
      Kind{"layers { dense { units: 1 } } loss: LOSS_SQUARED", 0});
  const float loss_scale = GENERATE(1.0f, 64.0f);
  CAPTURE(kind.head, loss_scale);
  auto backend = TestBackend();
  auto model = Built(kind, *backend);
  const Batch batch = MixedBatch(kind, 6, 1);
  const std::vector<float> weights = RandomValues(model->schema().total(), 3);
  std::vector<float> mixed(weights.size()), first(weights.size()), second(weights.size());
  const auto train = [&](const Batch& b, std::vector<float>& contribution) {
    const auto loss = model->Train(b, weights, {}, contribution, nullptr, Home::kHost, loss_scale);
    INFO(loss.status());
    REQUIRE(loss.ok());
    return *loss;
  };
  const double a = train(Unmixed(batch, false), first), b = train(Unmixed(batch, true), second);
  REQUIRE(a != Approx(b));
  CHECK(train(batch, mixed) == Approx(0.7 * a + 0.3 * b));
  std::vector<double> expected;
  for (size_t i = 0; i < weights.size(); ++i) {
    expected.push_back(0.7 * static_cast<double>(first[i]) + 0.3 * static_cast<double>(second[i]));
  }
  CHECK(RelativeError(mixed, expected) < 1e-5);
  // The next batch is computed as by a model that never mixes.
  std::vector<float> again(weights.size());
  CHECK(train(Unmixed(batch, false), again) == a);
  CHECK(again == first);
}

TEST_CASE("a mixed batch's gradient is the slope of its loss") {
  auto backend = TestBackend();
  auto model = Built(kSoftmax, *backend);
  const Batch batch = MixedBatch(kSoftmax, 6, 1);
  std::vector<float> weights = RandomValues(model->schema().total(), 3);
  std::vector<float> contribution(weights.size()), ignored(weights.size());
  REQUIRE(model->Train(batch, weights, {}, contribution).ok());
  std::vector<double> slopes;
  constexpr float kStep = 1.0f / 64;
  for (float& value : weights) {
    const float kept = value;
    value = kept + kStep;
    const double above = *model->Train(batch, weights, {}, ignored);
    value = kept - kStep;
    const double below = *model->Train(batch, weights, {}, ignored);
    slopes.push_back((above - below) / (2 * static_cast<double>(kStep)) /
                     static_cast<double>(batch.size));
    value = kept;
  }
  CHECK(RelativeError(contribution, slopes) < 2e-3);
}

TEST_CASE("the observer hears the loss of both labels") {
  class Hearing : public TrainObserver {
   public:
    absl::Status AfterForward(double loss_sum, uint64_t examples) override {
      heard = loss_sum;
      return absl::OkStatus();
    }
    double heard = -1;
  };
  auto backend = TestBackend();
  auto model = Built(kSoftmax, *backend);
  const std::vector<float> weights = RandomValues(model->schema().total(), 3);
  std::vector<float> contribution(weights.size());
  Hearing observer;
  const auto loss = model->Train(MixedBatch(kSoftmax, 6, 1), weights, {}, contribution, &observer);
  REQUIRE(loss.ok());
  CHECK(observer.heard == *loss);
}

TEST_CASE("other labels that do not fit are refused before anything is computed") {
  auto backend = TestBackend();
  auto model = Built(kSoftmax, *backend);
  const std::vector<float> weights = RandomValues(model->schema().total(), 3);
  std::vector<float> contribution(weights.size(), 5.0f);
  const auto error = [&](Model& of, const Batch& batch) {
    const absl::Status status = of.Train(batch, weights, {}, contribution).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(contribution == std::vector<float>(weights.size(), 5.0f));
    return std::string(status.message());
  };
  Batch batch = MixedBatch(kSoftmax, 4, 1);
  CHECK(error(*Built(kSoftmax, *backend, false), batch).find("built for batches without mixup") !=
        std::string::npos);
  batch.other_labels[1] = 3;
  CHECK(error(*model, batch) == "label 3 of example 1 of the batch is not a class from 0 to 2");
  batch.other_labels.pop_back();
  CHECK(error(*model, batch).find("3 mixup labels") != std::string::npos);
  batch = MixedBatch(kSoftmax, 4, 1);
  batch.share = GENERATE(-0.1f, 1.5f, std::nanf(""));
  CHECK(error(*model, batch).find("share") != std::string::npos);
}

TEST_CASE("only a model of mixed batches has memory for them") {
  auto backend = TestBackend();
  const MemoryPlan mixed = Built(kSoftmax, *backend)->PlanMemory(16, true);
  const MemoryPlan plain = Built(kSoftmax, *backend, false)->PlanMemory(16, true);
  // Scores and labels of 16 examples.
  CHECK(mixed.gradients - plain.gradients == 48);
  CHECK(mixed.batch - plain.batch == 16);
  CHECK(mixed.total() - plain.total() == 64);
}

}  // namespace
}  // namespace leeway::testing::mixup
