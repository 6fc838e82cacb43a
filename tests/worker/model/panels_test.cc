// Large dense layers, which are computed in panels. The values stay the same, each panel uses only
// its own weights, and the observer is told of each panel as it becomes final.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/worker/model/reference.h"
#include "tests/worker/model/support.h"
#include "worker/model/train_observer.h"

namespace leeway::testing::panels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// The inputs of three panels, of 130, 130 and 129 rows.
constexpr uint32_t kInputs = 389;
constexpr uint32_t kUnits = 4100;

std::unique_ptr<Layer> Dense(uint32_t inputs, uint32_t units, bool bias = true) {
  v1::Layer config;
  config.mutable_dense()->set_units(units);
  config.mutable_dense()->set_bias(bias);
  LayerOr layer = MakeLayer(config, {1, 1, inputs});
  REQUIRE(layer.ok());
  return *std::move(layer);
}

TEST_CASE("a dense layer is cut between rows where it is large, by its shape alone") {
  CHECK(Dense(784, 512)->panel_cuts().empty());
  // Too few rows for two panels.
  CHECK(Dense(255, 100'000)->panel_cuts().empty());
  CHECK(Dense(kInputs, kUnits)->panel_cuts() ==
        std::vector<uint64_t>{130ull * kUnits, 260ull * kUnits});
  const std::vector<uint64_t> cuts = Dense(2048, 2048)->panel_cuts();
  REQUIRE(cuts.size() == 7);
  for (size_t i = 0; i < cuts.size(); ++i) CHECK(cuts[i] == (i + 1) * 256 * 2048);
}

TEST_CASE("the panels of a dense layer give what the whole layer would") {
  const uint32_t threads = GENERATE(1u, 3u);
  const bool bias = GENERATE(true, false);
  const bool wants_dx = GENERATE(true, false);
  constexpr size_t kBatch = 5;
  auto backend = TestBackend(threads);
  const auto layer = Dense(kInputs, kUnits, bias);
  const size_t panels = layer->panel_cuts().size() + 1;
  const Floats x = RandomValues(kBatch * kInputs, 1);
  const Floats w = RandomValues(size_t{kInputs} * kUnits, 2);
  const Floats b = RandomValues(kUnits, 3);
  Floats dy = RandomValues(kBatch * kUnits, 4);
  Floats y(dy.size(), kNan), dw(w.size(), kNan), db(b.size(), kNan), dx(x.size(), kNan);
  const float* const weights[] = {w.data(), b.data()};
  float* const contributions[] = {dw.data(), db.data()};
  Pass pass{.backend = *backend,
            .batch = kBatch,
            .training = true,
            .draw = {},
            .weights = std::span(weights).first(bias ? 2 : 1),
            .contributions = std::span(contributions).first(bias ? 2 : 1)};
  for (pass.panel = 0; pass.panel < panels; ++pass.panel) layer->Forward(pass, x.data(), y.data());
  for (pass.panel = 0; pass.panel < panels; ++pass.panel) {
    layer->Backward(pass, x.data(), y.data(), dy.data(), wants_dx ? dx.data() : nullptr);
  }

  Floats rows;
  for (size_t i = 0; i < kBatch; ++i) rows.insert(rows.end(), b.begin(), b.end());
  CHECK(RelativeError(y, ReferenceGemm({kBatch, kUnits, kInputs}, Op::kAsIs, x, Op::kAsIs, w,
                                       bias ? &rows : nullptr)) < 2e-6);
  CHECK(RelativeError(dw, ReferenceGemm({kInputs, kUnits, kBatch}, Op::kTransposed, x, Op::kAsIs,
                                        dy, nullptr)) < 2e-6);
  const Floats ones(kBatch, 1.0f);
  if (bias) {
    CHECK(RelativeError(db, ReferenceGemm({1, kUnits, kBatch}, Op::kAsIs, ones, Op::kAsIs, dy,
                                          nullptr)) < 2e-6);
  }
  if (wants_dx) {
    CHECK(RelativeError(dx, ReferenceGemm({kBatch, kInputs, kUnits}, Op::kAsIs, dy, Op::kTransposed,
                                          w, nullptr)) < 2e-6);
  } else {
    CHECK(std::all_of(dx.begin(), dx.end(), [](float value) { return std::isnan(value); }));
  }
}

// Like an exchange over a slow network: a weight is there once it has been asked for, and is gone
// when its gradient is final. The gradient's value at that moment counts.
class Lending : public TrainObserver {
 public:
  Lending(const std::vector<float>& source, std::vector<float>& weights,
          const std::vector<float>& contribution)
      : sent(source.size(), kNan),
        times_asked(source.size()),
        times_final(source.size()),
        source_(source),
        weights_(weights),
        contribution_(contribution) {}

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    ++asked;
    for (const ElementRange& range : elements) {
      for (uint64_t i = range.offset; i < range.end(); ++i) {
        weights_[i] = source_[i];
        ++times_asked[i];
      }
    }
    return absl::OkStatus();
  }
  absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
    for (const ElementRange& range : elements) {
      finals.push_back(range);
      for (uint64_t i = range.offset; i < range.end(); ++i) {
        sent[i] = contribution_[i];
        weights_[i] = kNan;
        ++times_final[i];
      }
    }
    return absl::OkStatus();
  }

  int asked = 0;
  std::vector<ElementRange> finals;
  std::vector<float> sent;
  std::vector<int> times_asked;
  std::vector<int> times_final;

 private:
  const std::vector<float>& source_;
  std::vector<float>& weights_;
  const std::vector<float>& contribution_;
};

TEST_CASE("each panel waits for its own weights and is final before the next one is computed") {
  auto backend = TestBackend(GENERATE(1u, 2u));
  // The panelled layer is the second of several, so that it computes a dx.
  auto model = BuildModel(R"(
      layers { dense { units: 389 } } layers { batch_norm {} } layers { relu {} }
      layers { dense { units: 4100 } } layers { relu {} } layers { dense { units: 3 } }
      loss: LOSS_SOFTMAX_CROSS_ENTROPY)",
                          {1, 1, 20}, 3, *backend);
  const size_t total = model->schema().total();
  const Batch batch = RandomBatch(6, 20, 3, 5);
  const std::vector<float> source = InitialWeights(*model, 1);
  std::vector<float> whole(total), weights(total, kNan), contribution(total);
  const auto loss = model->Train(batch, source, {}, whole);
  REQUIRE(loss.ok());
  REQUIRE(std::isfinite(*loss));

  Lending lending(source, weights, contribution);
  const auto lent = model->Train(batch, weights, {}, contribution, &lending);
  REQUIRE(lent.ok());
  CHECK(*lent == *loss);
  CHECK(std::memcmp(lending.sent.data(), whole.data(), total * sizeof(float)) == 0);
  CHECK(std::memcmp(contribution.data(), whole.data(), total * sizeof(float)) == 0);
  CHECK(lending.times_asked == std::vector<int>(total, 1));
  CHECK(lending.times_final == std::vector<int>(total, 1));

  CHECK(lending.asked == 4 + 2);
  // dense_3 begins behind dense_0 (20 x 389 and 389) and batch_norm_1.
  constexpr uint64_t kFirst = 21 * 389 + 2 * 389;
  REQUIRE(lending.finals.size() == 2 + 4 + 2);
  CHECK(lending.finals[3].offset == kFirst);
  CHECK(lending.finals[3].end() == kFirst + 130 * kUnits);
  CHECK(lending.finals[4].end() == kFirst + 260 * kUnits);
  CHECK(lending.finals[5].end() == kFirst + 390 * kUnits);
}

TEST_CASE("a panelled model's bits do not depend on where its vectors lie") {
  constexpr size_t kElements = size_t{kInputs} * kUnits + kUnits;
  const Batch batch = RandomBatch(3, kInputs, 10, 5);
  const uint32_t threads = GENERATE(1u, 2u);
  std::vector<float> first;
  for (const size_t shift : {0, 1, 3, 8}) {
    auto backend = TestBackend(threads);
    auto model = BuildModel("layers { dense { units: 4100 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                            {1, 1, kInputs}, 4100, *backend);
    std::vector<float> weights(kElements + shift), contribution(kElements + shift);
    const std::span target = std::span(contribution).subspan(shift);
    model->Initialize(3, std::span(weights).subspan(shift));
    REQUIRE(model->Train(batch, std::span(weights).subspan(shift), {}, target).ok());
    if (first.empty()) first.assign(target.begin(), target.end());
    REQUIRE(std::memcmp(first.data(), target.data(), target.size_bytes()) == 0);
  }
}

}  // namespace
}  // namespace leeway::testing::panels
