// The gradient exchange behind the compute: when blocks leave, and what waits for which block.
#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "client/calls/parameter_client.h"
#include "common/codec/plan.h"
#include "common/mutex.h"
#include "common/philox.h"
#include "common/status.h"
#include "tests/catch.h"
#include "tests/client/fake_servers.h"
#include "tests/worker/training/driven.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/training/clock_runner.h"

namespace leeway::overlap {
namespace {

using testing::FakeModel;
using testing::FakeRequest;

// Three blocks of four elements. Of the three layers the middle one is in two blocks, and the last
// block has an averaged element.
constexpr uint64_t kTotal = 12;
constexpr ElementRange kLayers[] = {{0, 3}, {3, 4}, {7, 4}};
constexpr ElementRange kAveraged = {11, 1};

// A model's step by layers. `at` is called after each part: "forward 0", "backward 2", ...
class LayeredSteps : public StepRunner {
 public:
  std::function<void(uint64_t step, const std::string& what)> at = [](uint64_t,
                                                                      const std::string&) {};
  std::function<float(uint64_t step, size_t element)> gradient = [](uint64_t, size_t) {
    return 1.0f;
  };
  std::function<uint64_t(uint64_t step)> examples = [](uint64_t) { return 2; };
  // All elements become final at the end.
  bool at_once = false;
  bool forgets_the_last = false;

  absl::StatusOr<StepResult> Run(uint64_t step, const StepVectors& vectors,
                                 TrainObserver& observer) override {
    const auto& [weights, contribution, home, loss_scale] = vectors;
    const ElementRange all[] = {{0, kTotal}};
    for (size_t i = 0; i < 3; ++i) {
      const ElementRange parts[] = {kLayers[i], kAveraged};
      RETURN_IF_ERROR(observer.BeforeForward(std::span(parts).first(i == 2 ? 2 : 1)));
      seen[{step, i}] = weights[kLayers[i].offset];
      at(step, "forward " + std::to_string(i));
    }
    Write(step, kAveraged, contribution);
    RETURN_IF_ERROR(observer.AfterForward(1, examples(step)));
    if (!at_once) RETURN_IF_ERROR(observer.OnFinal({&kAveraged, 1}, false));
    for (size_t i = 3; i-- > 0;) {
      Write(step, kLayers[i], contribution);
      if (i == 0 && forgets_the_last) break;
      if (!at_once) RETURN_IF_ERROR(observer.OnFinal({&kLayers[i], 1}, false));
      at(step, "backward " + std::to_string(i));
    }
    if (at_once) RETURN_IF_ERROR(observer.OnFinal(all, false));
    return StepResult{.loss_sum = 1, .examples = examples(step)};
  }

  // By step and layer: the layer's first weight, as the step's forward pass saw it.
  std::map<std::pair<uint64_t, size_t>, float> seen;

 private:
  void Write(uint64_t step, const ElementRange& range, std::span<float> contribution) {
    for (uint64_t i = range.offset; i < range.end(); ++i) contribution[i] = gradient(step, i);
  }
};

// The servers' side: which blocks have been sent, and which are held up.
class Arrivals {
 public:
  absl::Status Take(const FakeRequest& request) {
    if (request.method != "PushPull") return absl::OkStatus();
    MutexLock lock(mutex_);
    arrived_.insert({request.header.clock(), request.header.block()});
    changed_.NotifyAll();
    if (!held_.contains(request.header.block())) return absl::OkStatus();
    return absl::UnavailableError("waiting for worker 1");
  }
  // Whether a block of a clock has come. Ends the wait for it.
  bool Await(uint64_t clock, uint32_t block) {
    const Time limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    MutexLock lock(mutex_);
    while (!arrived_.contains({clock, block})) {
      if (!changed_.WaitUntil(mutex_, limit)) return arrived_.contains({clock, block});
    }
    return true;
  }
  bool Has(uint64_t clock, uint32_t block) {
    MutexLock lock(mutex_);
    return arrived_.contains({clock, block});
  }
  void Hold(std::set<uint32_t> blocks) {
    MutexLock lock(mutex_);
    held_ = std::move(blocks);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::pair<uint64_t, uint32_t>> arrived_ GUARDED_BY(mutex_);
  std::set<uint32_t> held_ GUARDED_BY(mutex_);
};

class Notes : public ExchangeListener {
 public:
  absl::Status OnBegin(uint64_t clock) override {
    return clock < end ? absl::OkStatus() : absl::CancelledError("the end");
  }
  void OnComplete(const ExchangeReport& report) override { complete.push_back(report); }

  uint64_t end = std::numeric_limits<uint64_t>::max();
  std::vector<ExchangeReport> complete;
};

struct Rig {
  explicit Rig(uint32_t accumulation = 1, bool compressed = false, uint64_t clock = 0,
               double max_norm = 0) {
    if (max_norm > 0) job.mutable_exchange()->set_max_norm(max_norm);
    job.mutable_exchange()->mutable_gradient()->set_accumulation(accumulation);
    job.mutable_update()->mutable_sgd();
    job.mutable_update()->set_learning_rate(0.5);
    length.set_steps_per_epoch(100);
    length.set_steps(100);
    length.set_clocks(100);
    length.set_steps_per_clock(accumulation);
    schema.set_trained(kTotal - 1);
    schema.set_total(kTotal);
    for (const ElementRange& layer : kLayers) {
      v1::TensorSpec* tensor = schema.add_tensors();
      tensor->set_name("dense_" + std::to_string(layer.offset) + "/weight");
      tensor->set_offset(layer.offset);
      tensor->add_shape(layer.count);
    }
    model->script = [this](const FakeRequest& request) { return arrivals.Take(request); };
    ParameterClientOptions options;
    options.servers = {"a:1"};
    options.total = kTotal;
    options.block_elements = 4;
    // Time passes fast while a block is held.
    options.exchange_seconds = 1e9;
    if (compressed) {
      job.mutable_compression()->mutable_contributions()->mutable_top_k()->set_share(0.25);
      job.mutable_compression()->mutable_weights()->mutable_none();
      options.codecs = *CodecPlan::Of(job, schema, model->layout());
    }
    client = *ParameterClient::Open(options, testing::Reach(model));
    exchange =
        *testing::Driven::Make(MakeServerCarrier(*client, nullptr, [this] { return now.load(); }),
                               [&](Carrier& carrier) -> RunnerContext {
                                 return {.job = job,
                                         .schema = schema,
                                         .length = length,
                                         .carrier = carrier,
                                         .backend = *backend,
                                         .steps = steps,
                                         .listener = notes};
                               });
    REQUIRE(exchange->Begin(clock).ok());
  }

  absl::Status Run(uint64_t clock) {
    const uint64_t steps_per_clock = length.steps_per_clock();
    return exchange
        ->Run({.clock = clock, .first_step = clock * steps_per_clock, .steps = steps_per_clock})
        .status();
  }

  v1::TrainingJob job;
  v1::ModelSchema schema;
  v1::JobLength length;
  std::atomic<Time> now{Time{}};
  Arrivals arrivals;
  std::unique_ptr<Backend> backend = *EigenBackend::Make(1);
  LayeredSteps steps;
  Notes notes;
  std::shared_ptr<FakeModel> model =
      std::make_shared<FakeModel>(*BlockLayout::FromWire(kTotal, 1, 4));
  // As in the trainer, the client ends before the exchange.
  std::unique_ptr<testing::Driven> exchange;
  std::unique_ptr<ParameterClient> client;
};

TEST_CASE("a block leaves when backward has finished its layers, before the layers below") {
  Rig rig;
  std::vector<std::string> late;
  const auto expect = [&](uint32_t block, bool here) {
    const bool has = here ? rig.arrivals.Await(0, block) : rig.arrivals.Has(0, block);
    if (has != here) late.push_back("block " + std::to_string(block));
  };
  rig.steps.at = [&](uint64_t, const std::string& what) {
    if (what == "forward 2") expect(2, false);
    if (what == "backward 2") {
      expect(2, true);
      // The first three elements of block 1 belong to the middle layer.
      expect(1, false);
    }
    if (what == "backward 1") {
      expect(1, true);
      expect(0, false);
    }
    if (what == "backward 0") expect(0, true);
  };
  REQUIRE(rig.Run(0).ok());
  CHECK(late.empty());
  REQUIRE(rig.exchange->Settle().ok());
}

TEST_CASE("the next forward waits for its own blocks only") {
  // With a guard, which keeps all blocks back until the whole gradient is checked, as well.
  const double max_norm = GENERATE(0.0, 1e9);
  Rig rig(1, false, 0, max_norm);
  rig.arrivals.Hold({1, 2});
  REQUIRE(rig.Run(0).ok());
  rig.steps.at = [&](uint64_t, const std::string& what) {
    // This is reached while the blocks of the layers above are held.
    if (what == "forward 0") rig.arrivals.Hold({2});
    if (what == "forward 1") rig.arrivals.Hold({});
    if (what == "forward 2") CHECK(rig.notes.complete.empty());
    if (what == "backward 2") CHECK(rig.notes.complete.size() == 1);
  };
  REQUIRE(rig.Run(1).ok());
  for (size_t layer = 0; layer < 3; ++layer) {
    CHECK(rig.steps.seen[{0, layer}] == 0.0f);
    CHECK(rig.steps.seen[{1, layer}] == -1.0f);
  }
}

TEST_CASE("settling waits for what is under way and says once that it is over") {
  Rig rig;
  rig.model->staleness = 3;
  CHECK(rig.exchange->Settle().ok());
  CHECK(rig.notes.complete.empty());
  rig.arrivals.Hold({0, 1, 2});
  REQUIRE(rig.Run(0).ok());
  rig.now = Time{} + std::chrono::seconds(5);
  rig.arrivals.Hold({});
  REQUIRE(rig.exchange->Settle().ok());
  REQUIRE(rig.exchange->Settle().ok());
  CHECK(std::vector<float>(rig.exchange->weights().begin(), rig.exchange->weights().end()) ==
        std::vector<float>(kTotal, -1.0f));
  REQUIRE(rig.notes.complete.size() == 1);
  CHECK(rig.notes.complete[0].clock == 0);
  CHECK(rig.notes.complete[0].version == 1);
  CHECK(rig.notes.complete[0].staleness == 3);
  CHECK(rig.notes.complete[0].exchange_seconds == 5);
  // Settle took none of that time.
  CHECK(rig.notes.complete[0].wait_seconds == 0);
}

TEST_CASE("what the worker stands still is counted to the exchange that it waits for") {
  Rig rig;
  rig.arrivals.Hold({0, 1, 2});
  REQUIRE(rig.Run(0).ok());
  auto waiting = std::async(std::launch::async, [&] {
    rig.now = Time{} + std::chrono::seconds(3);
    rig.arrivals.Hold({});
  });
  REQUIRE(rig.Run(1).ok());
  waiting.get();
  REQUIRE(rig.notes.complete.size() == 1);
  CHECK(rig.notes.complete[0].exchange_seconds == 3);
  CHECK(rig.notes.complete[0].wait_seconds <= 3);
}

TEST_CASE("an exchange that may not begin sends nothing, and the one before is complete") {
  Rig rig;
  rig.notes.end = 1;
  REQUIRE(rig.Run(0).ok());
  CHECK(absl::IsCancelled(rig.Run(1)));
  REQUIRE(rig.notes.complete.size() == 1);
  CHECK(rig.notes.complete[0].clock == 0);
  for (uint32_t block = 0; block < 3; ++block) {
    CHECK(rig.arrivals.Has(0, block));
    CHECK(!rig.arrivals.Has(1, block));
  }
}

TEST_CASE("a gradient that is not finite is not sent, nor what is below it") {
  Rig rig;
  rig.steps.gradient = [](uint64_t, size_t element) {
    return element == 5 ? std::numeric_limits<float>::infinity() : 1.0f;
  };
  const absl::Status status = rig.Run(0);
  CHECK(status.code() == absl::StatusCode::kOutOfRange);
  CHECK_THAT(std::string(status.message()),
             Catch::StartsWith("worker 0, clock 0, step 0: the gradient of dense_3/weight[2] is "
                               "inf"));
  CHECK(rig.arrivals.Await(0, 2));
  CHECK(!rig.arrivals.Has(0, 1));
  CHECK(!rig.arrivals.Has(0, 0));
}

TEST_CASE("a failed exchange is the error of the clock that waits for it") {
  Rig rig;
  rig.model->script = [](const FakeRequest& request) {
    return request.header.block() == 1 && request.method == "PushPull"
               ? absl::AbortedError("a newer life exists")
               : absl::OkStatus();
  };
  REQUIRE(rig.Run(0).ok());
  const absl::Status status = rig.Run(1);
  CHECK(absl::IsAborted(status));
  CHECK_THAT(std::string(status.message()), Catch::Contains("block 1 at clock 0"));
  CHECK(rig.notes.complete.empty());
}

// Clock 0 was completed without this worker, which learns it from one of the three blocks.
void MissClock0(Rig& rig) {
  rig.model->script = [](const FakeRequest& request) {
    const bool late = request.method == "PushPull" && request.header.clock() == 0;
    return late && request.header.block() == 1 ? absl::AlreadyExistsError("clock 0 is complete")
                                               : absl::OkStatus();
  };
  REQUIRE(rig.Run(0).ok());
  REQUIRE(absl::IsAlreadyExists(rig.Run(1)));
  CHECK(rig.notes.complete.empty());
  REQUIRE(rig.exchange->Abandon());
  rig.model->set_weights(std::vector<float>(kTotal, 7));
  REQUIRE(rig.exchange->Begin(2).ok());
}

std::map<uint32_t, std::string> PayloadsOf(const Rig& rig, uint64_t clock) {
  std::map<uint32_t, std::string> payloads;
  for (const FakeRequest& request : rig.model->requests()) {
    if (request.method != "PushPull" || request.header.clock() != clock) continue;
    CHECK(request.header.examples() == 2);
    payloads[request.header.block()] = request.payload;
  }
  return payloads;
}

TEST_CASE("an exchange that was overtaken is abandoned, and the next clock is a whole one") {
  Rig rig;
  MissClock0(rig);
  rig.steps.gradient = [](uint64_t, size_t element) { return static_cast<float>(element); };
  REQUIRE(rig.Run(2).ok());
  REQUIRE(rig.exchange->Settle().ok());
  for (size_t layer = 0; layer < 3; ++layer) CHECK(rig.steps.seen[{2, layer}] == 7.0f);
  CHECK(PayloadsOf(rig, 2).size() == 3);
  const auto weights = rig.exchange->weights();
  for (size_t i = 0; i < kTotal; ++i) CHECK(weights[i] == 7.0f - static_cast<float>(i));
  REQUIRE(rig.notes.complete.size() == 1);
  CHECK(rig.notes.complete[0].clock == 2);
}

TEST_CASE("a contribution that was dropped takes nothing of the residual with it") {
  Rig dropped(1, true), counted(1, true), fresh(1, true, 2);
  for (Rig* rig : {&dropped, &counted, &fresh}) {
    rig->steps.gradient = [](uint64_t step, size_t element) {
      return static_cast<float>(1 + (element + step) % 3);
    };
  }
  MissClock0(dropped);
  MissClock0(counted);
  dropped.exchange->Drop(0);
  for (Rig* rig : {&dropped, &counted, &fresh}) {
    REQUIRE(rig->Run(2).ok());
    REQUIRE(rig->exchange->Settle().ok());
  }
  CHECK(PayloadsOf(dropped, 2) == PayloadsOf(fresh, 2));
  CHECK(PayloadsOf(counted, 2) != PayloadsOf(fresh, 2));
}

TEST_CASE("accumulated batches have the same bits layer by layer as at once, and leave once") {
  std::vector<std::vector<float>> sent;
  for (const bool at_once : {true, false}) {
    Rig rig(3);
    rig.steps.at_once = at_once;
    rig.steps.examples = [](uint64_t step) { return std::vector<uint64_t>{3, 0, 7}[step % 3]; };
    rig.steps.gradient = [](uint64_t step, size_t element) {
      RandomStream draws(7, RandomPurpose::kGenerate, {step, element});
      return static_cast<float>(draws.Normal());
    };
    for (uint64_t clock = 0; clock < 3; ++clock) REQUIRE(rig.Run(clock).ok());
    REQUIRE(rig.exchange->Settle().ok());
    CHECK(rig.notes.complete.size() == 3);
    std::vector<float> values(3 * kTotal);
    int pushes = 0;
    for (const FakeRequest& request : rig.model->requests()) {
      if (request.method != "PushPull") continue;
      ++pushes;
      CHECK(request.header.examples() == 10);
      std::copy(request.values.begin(), request.values.end(),
                values.begin() + request.header.clock() * kTotal + request.header.block() * 4);
    }
    CHECK(pushes == 9);
    sent.push_back(values);
  }
  CHECK(std::memcmp(sent[0].data(), sent[1].data(), sent[0].size() * sizeof(float)) == 0);
}

TEST_CASE("blocks that never become final are an error, not a clock that hangs") {
  Rig rig;
  rig.steps.forgets_the_last = true;
  const absl::Status status = rig.Run(0);
  CHECK(status.code() == absl::StatusCode::kInternal);
  CHECK_THAT(std::string(status.message()), Catch::Contains("3 elements"));
}

}  // namespace
}  // namespace leeway::overlap
