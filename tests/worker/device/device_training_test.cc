// Models on a device with memory of its own, whose work runs late and in any order: the same bits
// as on the CPU, the observer told in the same order, and every wait in the code is needed.
#include <cstring>
#include <limits>

#include "tests/worker/device/fake_device.h"
#include "tests/worker/model/support.h"
#include "worker/model/train_observer.h"

namespace leeway::testing {
namespace {

// Every layer there is, and running statistics.
constexpr char kEveryLayer[] = R"(
    layers { conv2d { filters: 3 kernel: 3 padding: 1 } } layers { batch_norm {} } layers { relu {} }
    layers { max_pool {} } layers { conv2d { filters: 4 kernel: 2 } } layers { gelu {} }
    layers { avg_pool { size: 2 stride: 1 } } layers { flatten {} } layers { dropout { rate: 0.3 } }
    layers { dense { units: 6 } } layers { tanh {} } layers { dense { units: 3 } }
    loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
constexpr ImageShape kImage = {8, 8, 2};
constexpr size_t kFeatures = 128;

std::unique_ptr<FakeDevice> Device(const FakeDeviceOptions& options) {
  auto device = FakeDevice::Make(options);
  REQUIRE(device.ok());
  return *std::move(device);
}

// As an exchange uses vectors: weights are there when they are asked for, and not before; what is
// final leaves at once, and the weights' place is taken.
class Exchanging : public TrainObserver {
 public:
  Exchanging(const std::vector<float>& newest, std::vector<float>& weights,
             std::vector<float>& contribution)
      : newest_(newest), weights_(weights), contribution_(contribution), sent(newest.size(), -7) {}

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    notes.push_back('b');
    Copy(elements, newest_, weights_);
    return absl::OkStatus();
  }
  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    notes.push_back('l');
    loss = loss_sum;
    return examples > 0 && fail ? absl::UnavailableError("the servers") : absl::OkStatus();
  }
  absl::Status OnFinal(std::span<const ElementRange> elements) override {
    notes.push_back('f');
    Copy(elements, contribution_, sent);
    for (const ElementRange& range : elements) {
      std::fill_n(weights_.begin() + range.offset, range.count,
                  std::numeric_limits<float>::infinity());
    }
    return absl::OkStatus();
  }

 private:
  static void Copy(std::span<const ElementRange> elements, const std::vector<float>& from,
                   std::vector<float>& to) {
    for (const ElementRange& range : elements) {
      std::copy_n(from.begin() + range.offset, range.count, to.begin() + range.offset);
    }
  }

  const std::vector<float>& newest_;
  std::vector<float>& weights_;
  std::vector<float>& contribution_;

 public:
  bool fail = false;
  std::string notes;
  double loss = -1;
  std::vector<float> sent;
};

// What a few steps and an evaluation have come to.
struct Outcome {
  absl::Status status;
  std::vector<double> losses;
  std::vector<float> sent;
  std::string notes;
  Model::Evaluation evaluation;
};

bool Same(const Outcome& a, const Outcome& b) {
  return a.losses == b.losses && a.notes == b.notes && a.sent.size() == b.sent.size() &&
         std::memcmp(a.sent.data(), b.sent.data(), a.sent.size() * sizeof(float)) == 0 &&
         a.evaluation.loss_sum == b.evaluation.loss_sum &&
         a.evaluation.correct == b.evaluation.correct &&
         a.evaluation.error.mae() == b.evaluation.error.mae();
}

struct Job {
  std::string model = kEveryLayer;
  ImageShape input = kImage;
  uint32_t classes = 3;
  uint64_t steps = 2;
  size_t batch = 4;
};

Outcome Train(const Job& job, Backend& backend) {
  const auto model = BuildModel(job.model, job.input, job.classes, backend);
  const std::vector<float> newest = InitialWeights(*model, 5);
  std::vector<float> weights(newest.size()), contribution(newest.size());
  Outcome outcome;
  Exchanging observer(newest, weights, contribution);
  for (uint64_t step = 0; step < job.steps && outcome.status.ok(); ++step) {
    Batch batch =
        RandomBatch(job.batch + step % 2, job.input.elements(), std::max(job.classes, 1u), step);
    std::fill(weights.begin(), weights.end(), std::numeric_limits<float>::infinity());
    const auto loss = model->Train(batch, weights, {1, step, 0}, contribution, &observer);
    // Nothing that is still under way reads it.
    std::fill(batch.features.begin(), batch.features.end(), 1e30f);
    outcome.status = loss.status();
    outcome.losses.push_back(loss.ok() ? *loss : 0);
    outcome.losses.push_back(observer.loss);
    outcome.sent.insert(outcome.sent.end(), observer.sent.begin(), observer.sent.end());
  }
  outcome.notes = observer.notes;
  if (!outcome.status.ok()) return outcome;
  const auto evaluation =
      model->Evaluate(RandomBatch(300, job.input.elements(), std::max(job.classes, 1u), 9), newest);
  outcome.status = evaluation.status();
  if (evaluation.ok()) outcome.evaluation = *evaluation;
  return outcome;
}

Outcome OnCpu(const Job& job) {
  const auto backend = TestBackend();
  const Outcome outcome = Train(job, *backend);
  REQUIRE(outcome.status.ok());
  return outcome;
}

TEST_CASE("A device's bits are the CPU's, whatever runs when") {
  const Job job = GENERATE(
      Job{}, Job{.model = "layers { dense { units: 1 } } loss: LOSS_SQUARED", .classes = 0},
      Job{.model = "layers { dense { units: 5 } } layers { relu {} } layers { dense { units: 1 } } "
                   "loss: LOSS_LOGISTIC",
          .classes = 2});
  Job flat = job;
  if (job.classes != 3) flat.input = {1, 1, 7};
  const Outcome expected = OnCpu(flat);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const auto device = Device({.seed = seed});
    const Outcome outcome = Train(flat, *device);
    CAPTURE(seed, outcome.status);
    REQUIRE(outcome.status.ok());
    REQUIRE(Same(outcome, expected));
  }
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

TEST_CASE("Every wait of a stream that is forgotten is found on every seed") {
  const Job job{.steps = 1};
  const auto device = Device({});
  REQUIRE(Train(job, *device).status.ok());
  CHECK(device->waits() > 10);
  for (uint64_t forgotten = 0; forgotten < device->waits(); ++forgotten) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto forgetful = Device({.seed = seed, .forget_wait = forgotten});
      CAPTURE(forgotten, seed, device->waits());
      REQUIRE(absl::IsInternal(Train(job, *forgetful).status));
    }
  }
}

TEST_CASE("Every wait of the host that is forgotten is found") {
  const Job job{.steps = 1};
  const Outcome expected = OnCpu(job);
  // Where nothing is done before it is waited for, every answer counts.
  const auto lazy = Device({.eagerness = 0});
  REQUIRE(Train(job, *lazy).status.ok());
  CHECK(lazy->awaits() > 5);
  CHECK(lazy->not_yet() > 5);
  const auto found = [&](const FakeDeviceOptions& options) {
    const auto forgetful = Device(options);
    const Outcome outcome = Train(job, *forgetful);
    return !outcome.status.ok() || !Same(outcome, expected);
  };
  for (uint64_t forgotten = 0; forgotten < lazy->awaits(); ++forgotten) {
    CAPTURE(forgotten, lazy->awaits());
    CHECK(found({.eagerness = 0, .forget_await = forgotten}));
  }
  for (uint64_t forgotten = 0; forgotten < lazy->not_yet(); ++forgotten) {
    CAPTURE(forgotten, lazy->not_yet());
    CHECK(found({.eagerness = 0, .forget_not_yet = forgotten}));
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
}  // namespace leeway::testing
