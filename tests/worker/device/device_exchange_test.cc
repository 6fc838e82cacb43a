// Exchanges whose steps run on a device with memory of its own. What they send and keep equals the
// CPU's, local steps move no vector, and every wait is needed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/match.h"
#include "client/calls/parameter_client.h"
#include "tests/client/fake_servers.h"
#include "tests/worker/device/fake_device.h"
#include "tests/worker/device/seeds.h"
#include "tests/worker/model/support.h"
#include "tests/worker/training/driven.h"
#include "worker/training/clock_runner.h"
#include "worker/training/spread_plan.h"

namespace leeway::testing::device_exchange {
namespace {

constexpr char kModel[] = R"(
    layers { name: "first" dense { units: 4 } } layers { batch_norm {} } layers { relu {} }
    layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
constexpr ImageShape kInput = {1, 1, 5};
constexpr uint64_t kClocks = 3;
// The elements of a block; the model has seven blocks.
constexpr uint64_t kBlockElements = 8;

// A model's steps, as a worker takes them.
class ModelSteps : public StepRunner {
 public:
  // Multiplies the loss by `more_scale`, and the examples' features by `features`.
  ModelSteps(Model& model, float more_scale, float features)
      : model_(model), more_scale_(more_scale), features_(features) {}
  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override {
    Batch batch = RandomBatch(4, kInput.elements(), 3, step);
    for (float& feature : batch.features) feature *= features_;
    const auto loss = model_.Train(batch, vectors.weights, {1, step, 0}, vectors.contribution,
                                   &observer, vectors.home, more_scale_ * vectors.loss_scale);
    if (!loss.ok()) return loss.status();
    return StepResult{.loss_sum = *loss, .examples = batch.size};
  }

 private:
  Model& model_;
  const float more_scale_;
  const float features_;
};

struct Variant {
  std::string name;
  bool elastic = false;
  bool spread = false;
  uint64_t local_steps = 3;
  // The loss scale overflows in the first steps.
  bool fp16 = false;
  // The loss is also multiplied by this factor.
  float more_scale = 1;
  // The examples' features are multiplied by this factor.
  float features = 1;
  // Chooses the compression of contributions; null: they are not compressed.
  void (*choose)(v1::Compression&) = nullptr;
  const char* model = kModel;
};

void Bf16(v1::Compression& job) { job.mutable_contributions()->mutable_bf16(); }
void Fp16(v1::Compression& job) { job.mutable_contributions()->mutable_fp16(); }
void Int8(v1::Compression& job) { job.mutable_contributions()->mutable_int8(); }
void Sign(v1::Compression& job) { job.mutable_contributions()->mutable_sign(); }
void TopK(v1::Compression& job) { job.mutable_contributions()->mutable_top_k()->set_share(0.3); }
// Some blocks travel uncompressed.
void Mixed(v1::Compression& job) {
  Sign(job);
  v1::LayerCompression& layer = *job.add_layers();
  layer.add_names("first");
  layer.mutable_contributions()->mutable_none();
}

v1::TrainingJob JobOf(const Variant& variant) {
  v1::TrainingJob job;
  v1::Update optimizer;
  optimizer.mutable_adam()->set_beta1(0.9);
  optimizer.mutable_adam()->set_beta2(0.999);
  optimizer.mutable_adam()->set_epsilon(1e-8);
  optimizer.mutable_adam()->set_weight_decay(0.1);
  optimizer.mutable_factors()->mutable_biases()->set_weight_decay(0);
  optimizer.mutable_factors()->mutable_norms()->set_learning_rate(0.5);
  optimizer.set_learning_rate(0.01);
  v1::Exchange& exchange = *job.mutable_exchange();
  if (variant.name == "gradient") {
    exchange.mutable_gradient()->set_accumulation(static_cast<uint32_t>(variant.local_steps));
  } else if (variant.elastic) {
    exchange.mutable_elastic()->set_alpha(0.25);
    exchange.mutable_elastic()->set_spread(variant.spread);
    *exchange.mutable_elastic()->mutable_optimizer() = optimizer;
  } else {
    exchange.mutable_delta()->set_spread(variant.spread);
    *exchange.mutable_delta()->mutable_optimizer() = optimizer;
  }
  job.mutable_update()->mutable_sgd();
  job.mutable_update()->set_learning_rate(0.5);
  job.mutable_data()->set_batch_size(4);
  if (variant.fp16) job.mutable_workers()->set_precision(v1::PRECISION_FP16);
  v1::Compression& compression = *job.mutable_compression();
  compression.mutable_contributions()->mutable_none();
  compression.mutable_weights()->mutable_none();
  if (variant.choose != nullptr) variant.choose(compression);
  return job;
}

// Checks that exchanges begin and end in turn, one clock after the other, each with answers to all
// blocks.
class InTurn : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    right_ &= !begun_.has_value();
    begun_ = clock;
    return absl::OkStatus();
  }
  void OnComplete(const ExchangeReport& report) override {
    right_ &= begun_ == report.clock && report.exchange_seconds >= 0 && report.wait_seconds >= 0;
    // The servers' version after a clock is the clock plus one.
    right_ &= report.version == report.clock + 1;
    begun_.reset();
    ++completed_;
  }

  // Whether this number of exchanges have been complete, and all were in order.
  bool Completed(uint64_t exchanges) const { return right_ && completed_ == exchanges; }

 private:
  bool right_ = true;
  std::optional<uint64_t> begun_;
  uint64_t completed_ = 0;
};

struct Outcome {
  absl::Status status;
  double loss_sum = 0;
  uint64_t overflowed = 0;
  // Exchanges came one after the other, and each was answered whole.
  bool in_turn = false;
  std::vector<float> sent;
  std::string state;
};

bool Same(const Outcome& a, const Outcome& b) {
  return a.in_turn && b.in_turn && a.sent.size() == b.sent.size() && a.state == b.state &&
         a.loss_sum == b.loss_sum && a.overflowed == b.overflowed &&
         std::memcmp(a.sent.data(), b.sent.data(), a.sent.size() * sizeof(float)) == 0;
}

// Runs some clocks, then saves a state with which another life runs one more. `backend` is the
// first life's.
class Run {
 public:
  Run(const Variant& variant, Backend& backend)
      : variant_(variant),
        job_(JobOf(variant)),
        model_(BuildModel(variant.model, kInput, 3, backend)),
        steps_(*model_, variant.fp16 ? 16 : variant.more_scale, variant.features),
        backend_(backend),
        servers_(std::make_shared<FakeModel>(layout(), variant.elastic, 0.25f)) {
    servers_->set_weights(InitialWeights(*model_, 5));
    length_.set_steps_per_epoch(100);
    length_.set_steps(100);
    length_.set_clocks(100);
    length_.set_steps_per_clock(variant.local_steps);
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.total = model_->schema().total();
    options.block_elements = kBlockElements;
    options.codecs = *CodecPlan::Of(job_, model_->schema(), layout());
    client_ = *ParameterClient::Open(options, Reach(servers_));
  }

  Outcome Finish(uint64_t clocks) {
    Outcome outcome;
    outcome.status = Clocks(0, clocks, outcome);
    if (outcome.status.ok()) outcome.status = Clocks(clocks, clocks + 1, outcome);
    outcome.in_turn = listener_.Completed(clocks + 1);
    std::map<std::pair<uint64_t, uint32_t>, std::vector<float>> sent;
    for (const FakeRequest& request : servers_->requests()) {
      if (request.method != "PushPull") continue;
      sent[{request.header.clock(), request.header.block()}] = request.values;
    }
    for (const auto& [block, values] : sent) {
      outcome.sent.insert(outcome.sent.end(), values.begin(), values.end());
    }
    return outcome;
  }

  size_t bytes() const { return model_->schema().total() * sizeof(float); }
  // The size of the same contributions on the bus.
  size_t encoded_bytes() const {
    const auto plan = *CodecPlan::Of(job_, model_->schema(), layout());
    size_t floats = 0;
    for (uint32_t block = 0; block < layout().blocks(); ++block) {
      floats += FloatsFor(plan->contribution(block).MaxBytes(layout().Range(block).count));
    }
    return floats * sizeof(float);
  }
  BlockLayout layout() const {
    return *BlockLayout::FromWire(model_->schema().total(), 1, kBlockElements);
  }

 private:
  absl::Status Clocks(uint64_t begin, uint64_t end, Outcome& outcome) {
    auto made = testing::Driven::Make(*client_, [&](Carrier& carrier) -> RunnerContext {
      return {.job = job_,
              .schema = model_->schema(),
              .length = length_,
              .carrier = carrier,
              .backend = backend_,
              .steps = steps_,
              .listener = listener_,
              .bus_part = 2 * kBlockElements,
              .loss_scales = scales_,
              .report_loss_scale = [this](const v1::LossScale& scale) {
                scales_.push_back(scale);
                return absl::OkStatus();
              }};
    });
    if (!made.ok()) return made.status();
    // A call that was broken off may still use the exchange's vectors.
    testing::Driven& exchange = *exchanges_.emplace_back(*std::move(made));
    if (!outcome.state.empty()) RETURN_IF_ERROR(exchange.LoadState(outcome.state));
    RETURN_IF_ERROR(exchange.Begin(begin).status());
    for (uint64_t clock = begin; clock < end; ++clock) {
      ASSIGN_OR_RETURN(const ClockReport report,
                       exchange.Run({.clock = clock,
                                     .first_step = clock * variant_.local_steps,
                                     .steps = variant_.local_steps}));
      outcome.loss_sum += report.loss_sum;
      outcome.overflowed += report.overflowed_steps;
    }
    RETURN_IF_ERROR(exchange.Settle());
    ASSIGN_OR_RETURN(outcome.state, exchange.SaveState());
    return exchange.ReadLatest();
  }

  const Variant variant_;
  const v1::TrainingJob job_;
  v1::JobLength length_;
  std::unique_ptr<Model> model_;
  ModelSteps steps_;
  Backend& backend_;
  InTurn listener_;
  std::vector<v1::LossScale> scales_;
  std::shared_ptr<FakeModel> servers_;
  std::vector<std::unique_ptr<testing::Driven>> exchanges_;
  std::unique_ptr<ParameterClient> client_;
};

std::unique_ptr<FakeDevice> Device(const FakeDeviceOptions& options) {
  auto device = FakeDevice::Make(options);
  REQUIRE(device.ok());
  return *std::move(device);
}

Outcome On(const Variant& variant, Backend& backend, uint64_t clocks = kClocks) {
  return Run(variant, backend).Finish(clocks);
}

const Variant kVariants[] = {{.name = "gradient", .local_steps = 1},
                             {.name = "gradient", .local_steps = 3},
                             {.name = "delta"},
                             {.name = "elastic", .elastic = true},
                             {.name = "spread delta", .spread = true},
                             {.name = "spread elastic", .elastic = true, .spread = true},
                             {.name = "gradient", .local_steps = 1, .choose = Int8},
                             {.name = "gradient", .local_steps = 1, .choose = Sign},
                             {.name = "gradient", .local_steps = 1, .choose = Mixed},
                             {.name = "gradient", .local_steps = 1, .choose = TopK},
                             {.name = "gradient", .local_steps = 2, .choose = Bf16},
                             {.name = "delta", .choose = Int8},
                             {.name = "delta", .choose = Mixed},
                             {.name = "delta", .choose = Fp16},
                             {.name = "spread delta", .spread = true, .choose = Sign},
                             {.name = "spread delta", .spread = true, .choose = Bf16}};

TEST_CASE("What exchanges send and keep is the same on a device, whatever runs when", "[seeds]") {
  for (const Variant& variant : kVariants) {
    const auto cpu = TestBackend();
    const Outcome expected = On(variant, *cpu);
    REQUIRE(expected.status.ok());
    for (uint64_t seed = 0; seed < Seeds(100); ++seed) {
      const auto device = Device({.seed = seed, .memory_bytes = 1 << 20});
      const Outcome outcome = On(variant, *device);
      CAPTURE(variant.name, seed, outcome.status);
      REQUIRE(outcome.status.ok());
      REQUIRE(device->status().ok());
      REQUIRE(Same(outcome, expected));
    }
  }
}

TEST_CASE("In fp16 what overflows on a device is left out, as on the CPU") {
  for (Variant variant : kVariants) {
    variant.fp16 = true;
    const auto cpu = TestBackend(1, Precision::kFp16);
    const Outcome expected = On(variant, *cpu);
    CAPTURE(variant.name, expected.status, expected.overflowed);
    REQUIRE(expected.status.ok());
    CHECK(expected.overflowed > 0);
    CHECK(expected.overflowed < (kClocks + 1) * variant.local_steps);
    CHECK(std::all_of(expected.sent.begin(), expected.sent.end(),
                      [](float value) { return std::isfinite(value); }));
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto device =
          Device({.seed = seed, .memory_bytes = 1 << 20, .precision = Precision::kFp16});
      const Outcome outcome = On(variant, *device);
      CAPTURE(seed, outcome.status);
      REQUIRE(outcome.status.ok());
      REQUIRE(device->status().ok());
      REQUIRE(Same(outcome, expected));
    }
  }
}

// Checks that the run ends with an error that names what is not finite and does not blame the
// device.
void EndsAsOnTheCpu(const Variant& variant, const char* named) {
  const auto cpu = TestBackend();
  const Outcome expected = On(variant, *cpu);
  CAPTURE(variant.name, expected.status);
  REQUIRE(absl::IsOutOfRange(expected.status));
  CHECK(absl::StrContains(expected.status.message(), named));
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto device = Device({.seed = seed, .memory_bytes = 1 << 20});
    const Outcome outcome = On(variant, *device);
    CAPTURE(seed, outcome.status);
    CHECK(outcome.status == expected.status);
    CHECK(device->status().ok());
    CHECK(outcome.sent.empty());
  }
}

TEST_CASE("A gradient that is not finite ends the clock on a device as on the CPU") {
  for (Variant variant : kVariants) {
    // Without averaged values, whose statistics would overflow first. The loss itself stays finite.
    variant.model = R"(
        layers { name: "first" dense { units: 4 } } layers { relu {} }
        layers { dense { units: 3 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
    variant.more_scale = std::numeric_limits<float>::infinity();
    EndsAsOnTheCpu(variant, "the gradient of ");
  }
}

TEST_CASE("A statistic that is not finite ends the clock on a device as on the CPU") {
  for (Variant variant : kVariants) {
    // A variance overflows; normalised values, the loss and the gradient stay finite.
    variant.features = 1e25f;
    EndsAsOnTheCpu(variant, "running_var");
  }
}

TEST_CASE("A local step moves a batch and its loss over the bus, and no vector") {
  const auto bytes = [](const Variant& variant) {
    const auto device = Device({.memory_bytes = 1 << 20});
    REQUIRE(On(variant, *device).status.ok());
    return std::pair(device->bytes_up(), device->bytes_down());
  };
  for (const Variant& variant : kVariants) {
    if (variant.name == "gradient") continue;
    Variant longer = variant;
    longer.local_steps = 13;
    const auto [up, down] = bytes(variant);
    const auto [more_up, more_down] = bytes(longer);
    const uint64_t steps = (kClocks + 1) * (longer.local_steps - variant.local_steps);
    CAPTURE(variant.name);
    // Four examples of five features and a label.
    CHECK(more_up - up == steps * 4 * 6 * sizeof(float));
    // Each step also reports whether the optimizer's step was finite.
    uint64_t told = steps * (sizeof(LossSum) + sizeof(float));
    // So does each group of blocks that leaves; a longer clock has more groups.
    if (variant.spread) {
      const BlockLayout layout = Run(variant, *TestBackend()).layout();
      const uint64_t groups = SpreadPlan(layout, longer.local_steps).groups() -
                              SpreadPlan(layout, variant.local_steps).groups();
      CHECK(groups > 0);
      told += (kClocks + 1) * groups * sizeof(float);
    }
    CHECK(more_down - down == told);
  }
}

TEST_CASE("Of a contribution that is encoded only the bytes come down") {
  // The bytes of a clock: the contribution, the losses, and whether something is finite.
  const auto bytes_down = [](const Variant& variant) {
    const auto bytes = [&](uint64_t clocks) {
      const auto device = Device({.memory_bytes = 1 << 20});
      REQUIRE(On(variant, *device, clocks).status.ok());
      return device->bytes_down();
    };
    return (bytes(2 * kClocks) - bytes(kClocks)) / kClocks;
  };
  for (const Variant& variant : kVariants) {
    if (variant.choose == nullptr) continue;
    Variant plain = variant;
    plain.choose = nullptr;
    const Run run(variant, *TestBackend());
    const bool host =
        variant.choose == TopK || (variant.name == "gradient" && variant.local_steps > 1);
    CAPTURE(variant.name, variant.local_steps);
    CHECK(bytes_down(plain) - bytes_down(variant) ==
          (host ? 0 : run.bytes() - run.encoded_bytes()));
    if (!host) CHECK(run.encoded_bytes() < run.bytes());
  }
}

TEST_CASE("What crosses the bus in each clock is pinned, but for the batches") {
  const auto unpinned = [](const Variant& variant, uint64_t clocks) {
    const auto device = Device({.memory_bytes = 1 << 20});
    REQUIRE(On(variant, *device, clocks).status.ok());
    return device->unpinned_bytes();
  };
  for (const Variant& variant : kVariants) {
    CAPTURE(variant.name);
    const uint64_t steps = kClocks * variant.local_steps;
    // Four examples of five features and a label. States that are saved and loaded are not pinned.
    CHECK(unpinned(variant, 2 * kClocks) - unpinned(variant, kClocks) ==
          steps * 4 * 6 * sizeof(float));
  }
}

TEST_CASE("An exchange that forgets a wait is found out") {
  for (const Variant& variant : kVariants) {
    const auto lazy = Device({.memory_bytes = 1 << 20, .eagerness = 0});
    const Outcome whole = On(variant, *lazy);
    CAPTURE(variant.name, whole.status);
    REQUIRE(whole.status.ok());
    const auto status = [&](FakeDeviceOptions options) {
      options.memory_bytes = 1 << 20;
      options.eagerness = 0;
      const auto forgetful = Device(options);
      const Outcome outcome = On(variant, *forgetful);
      return outcome.status.ok() ? forgetful->status() : outcome.status;
    };
    for (const Mistake mistake : {Mistake::kMissingEvent, Mistake::kEarlyHostRead}) {
      for (uint64_t at = 0; at < lazy->occasions(mistake); ++at) {
        CAPTURE(static_cast<int>(mistake), at, lazy->occasions(mistake));
        CHECK_FALSE(status({.mistake = mistake, .occasion = at}).ok());
      }
    }
  }
}

TEST_CASE("A device that fails ends an exchange with an error that names the work") {
  for (const Variant& variant : kVariants) {
    const auto device = Device({.memory_bytes = 1 << 20});
    const Outcome whole = On(variant, *device);
    CAPTURE(variant.name, whole.status);
    REQUIRE(whole.status.ok());
    for (uint64_t at = 0; at < device->queued(); at += 7) {
      const auto failing = Device({.seed = at, .memory_bytes = 1 << 20, .fail = at});
      const Outcome outcome = On(variant, *failing);
      CAPTURE(variant.name, at, outcome.status);
      REQUIRE(absl::IsInternal(outcome.status));
      CHECK_THAT(std::string(outcome.status.message()), Catch::Contains("the device has failed"));
    }
  }
}

}  // namespace
}  // namespace leeway::testing::device_exchange
