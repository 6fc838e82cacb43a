// Models on a device with memory of its own, whose work runs late and in any order: the bits are
// those of the CPU, and the observer is told in the same order.
#include "tests/worker/device/device_steps.h"
#include "tests/worker/device/seeds.h"

namespace leeway::testing::device_training {
namespace {

TEST_CASE("A device's bits are the CPU's, whatever runs when", "[seeds]") {
  const Job job = GENERATE(
      Job{}, Job{.model = "layers { dense { units: 1 } } loss: LOSS_SQUARED", .classes = 0},
      Job{.model = "layers { dense { units: 5 } } layers { relu {} } layers { dense { units: 1 } } "
                   "loss: LOSS_LOGISTIC",
          .classes = 2});
  Job flat = job;
  if (job.classes != 3) flat.input = {1, 1, 7};
  const Outcome expected = OnCpu(flat);
  for (uint64_t seed = 0; seed < Seeds(400); ++seed) {
    const auto device = Device({.seed = seed});
    const Outcome outcome = Train(flat, *device);
    CAPTURE(seed, outcome.status);
    REQUIRE(outcome.status.ok());
    REQUIRE(Same(outcome, expected));
  }
}

// A model of three parts. Each part is computed again in the backward pass, or is not.
Job InParts(const std::string& kind) {
  const std::string begin = "layers { " + kind + " { ";
  return {.model =
              begin +
              "layers { conv2d { filters: 3 kernel: 3 padding: 1 } } layers { batch_norm {} } "
              "layers { relu {} } } } " +
              begin +
              "layers { residual { layers { conv2d { filters: 3 kernel: 3 padding: 1 } } layers { "
              "batch_norm {} } layers { dropout { rate: 0.3 } } } } } } " +
              begin +
              "layers { flatten {} } layers { dense { units: 6 } } layers { gelu {} } } } "
              "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY"};
}

TEST_CASE("What a device computes again has the bits of what a CPU keeps", "[seeds]") {
  const Outcome expected = OnCpu(InParts("sequence"));
  CHECK(Same(OnCpu(InParts("recompute")), expected));
  for (uint64_t seed = 0; seed < Seeds(400); ++seed) {
    const auto device = Device({.seed = seed});
    const Outcome outcome = Train(InParts("recompute"), *device);
    CAPTURE(seed, outcome.status);
    REQUIRE(outcome.status.ok());
    REQUIRE(Same(outcome, expected));
  }
}

TEST_CASE("The last part is not computed again: its values are still there") {
  const auto queued = [](const std::string& model) {
    const auto device = Device({});
    REQUIRE(Train({.model = model, .input = {1, 1, 8}, .steps = 1, .evaluates = false}, *device)
                .status.ok());
    return device->queued();
  };
  const std::string part = "layers { dense { units: 8 } } layers { gelu {} } ";
  const std::string head = "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY";
  const std::string again = "layers { recompute { " + part + "} } ";
  CHECK(queued(again + head) == queued(part + head));
  const uint64_t twice = queued(again + again + head) - queued(part + part + head);
  const uint64_t three_times =
      queued(again + again + again + head) - queued(part + part + part + head);
  CHECK(twice > 0);
  CHECK(three_times == 2 * twice);
}

TEST_CASE("A large layer's panels leave one by one from a device, too") {
  const Job job{.model = "layers { dense { units: 4100 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                .input = {1, 1, 300},
                .classes = 4100,
                .steps = 1,
                .batch = 3};
  const Outcome expected = OnCpu(job);
  CHECK(std::count(expected.notes.begin(), expected.notes.end(), 'f') > 1);
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto device = Device({.seed = seed});
    const Outcome outcome = Train(job, *device);
    REQUIRE(outcome.status.ok());
    REQUIRE(Same(outcome, expected));
  }
}

TEST_CASE("A device that computes a large layer at once sends it in panels all the same") {
  const Job job{.model =
                    "layers { dense { units: 4100 } } layers { relu {} } "
                    "layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY",
                .input = {1, 1, 300},
                .classes = 3,
                .batch = 3};
  const Outcome in_panels = OnCpu(job);
  std::vector<float> sent;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const auto cutting = Device({.seed = seed});
    REQUIRE(Train(job, *cutting).status.ok());
    const auto device = Device({.seed = seed, .cuts_products = false});
    const Outcome outcome = Train(job, *device);
    REQUIRE(outcome.status.ok());
    CHECK(outcome.notes == in_panels.notes);
    CHECK(device->queued() < cutting->queued());
    CHECK(RelativeError(outcome.sent, in_panels.sent) < 1e-6);
    if (sent.empty()) sent = outcome.sent;
    CHECK(outcome.sent == sent);
  }
}

TEST_CASE("A device says of each part of a contribution whether it is finite") {
  // Two layers of one weight each. The last layer's gradient is infinite, or all are finite.
  const std::string model =
      "layers { dense { units: 1 bias: false } } "
      "layers { dense { units: 1 bias: false } } loss: LOSS_SQUARED";
  class Listening : public TrainObserver {
   public:
    absl::Status OnFinal(std::span<const ElementRange> elements, bool known_finite) override {
      (elements.front().offset == 0 ? first : last) = known_finite;
      return absl::OkStatus();
    }
    std::optional<bool> first, last;
  };
  for (const float feature : {1.0f, 1e30f}) {
    const auto device = Device({});
    const auto built = BuildModel(model, {1, 1, 1}, 0, *device);
    const std::vector<float> weights = {1e30f, 1e-30f};
    std::vector<float> contribution(2);
    Listening listening;
    const Batch batch{1, {feature}, {0}};
    REQUIRE(built->Train(batch, weights, {}, contribution, &listening).ok());
    CAPTURE(feature, contribution);
    CHECK(listening.first == std::isfinite(contribution[0]));
    CHECK(listening.last == std::isfinite(contribution[1]));
    CHECK(listening.last == (feature == 1));
  }
}

TEST_CASE("Whatever work fails, the step names it, and tells the observer of nothing more") {
  const Job job{.steps = 1};
  const Outcome expected = OnCpu(job);
  const auto device = Device({});
  REQUIRE(Train(job, *device).status.ok());
  for (uint64_t at = 0; at < device->queued(); ++at) {
    const auto failing = Device({.seed = at, .fail = at});
    const Outcome outcome = Train(job, *failing);
    CAPTURE(at, outcome.status);
    REQUIRE(absl::IsInternal(outcome.status));
    CHECK_THAT(std::string(outcome.status.message()), Catch::Contains("the device has failed"));
    CHECK(expected.notes.starts_with(outcome.notes));
  }
}

TEST_CASE("A step that the observer ends leaves nothing under way") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto device = Device({.seed = seed});
    const auto model = BuildModel(kEveryLayer, kImage, 3, *device);
    const std::vector<float> newest = InitialWeights(*model, 5);
    std::vector<float> weights(newest.size()), contribution(newest.size());
    Exchanging observer(newest, weights, contribution);
    observer.fail = true;
    {
      Batch batch = RandomBatch(4, kFeatures, 3, 1);
      const absl::Status status =
          model->Train(batch, weights, {}, contribution, &observer).status();
      REQUIRE(absl::IsUnavailable(status));
      std::fill(batch.features.begin(), batch.features.end(), 0.0f);
    }
    std::fill(weights.begin(), weights.end(), 0.0f);
    std::fill(contribution.begin(), contribution.end(), 0.0f);
    observer.fail = false;
    REQUIRE(
        model->Train(RandomBatch(4, kFeatures, 3, 1), weights, {}, contribution, &observer).ok());
    CHECK(device->status().ok());
  }
}

TEST_CASE("A device without room says so, and what wanted it") {
  const auto device = Device({.memory_bytes = 4096});
  const auto model = BuildModel(kEveryLayer, kImage, 3, *device);
  std::vector<float> weights(model->schema().total()), contribution(weights);
  const absl::Status status =
      model->Train(RandomBatch(4, kFeatures, 3, 1), weights, {}, contribution).status();
  CHECK(absl::IsResourceExhausted(status));
}

}  // namespace
}  // namespace leeway::testing::device_training
