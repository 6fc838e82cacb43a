// Steps of a model on a device, run as an exchange runs them, and their results.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/device/fake_device.h"
#include "tests/worker/model/support.h"
#include "worker/model/train_observer.h"

namespace leeway::testing {

// Every kind of layer, and running statistics.
inline constexpr char kEveryLayer[] = R"(
    layers { conv2d { filters: 3 kernel: 3 padding: 1 } } layers { batch_norm {} } layers { relu {} }
    layers { max_pool {} } layers { conv2d { filters: 4 kernel: 2 } } layers { gelu {} }
    layers { avg_pool { size: 2 stride: 1 } } layers { flatten {} } layers { dropout { rate: 0.3 } }
    layers { dense { units: 6 } } layers { tanh {} } layers { dense { units: 3 } }
    loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
inline constexpr ImageShape kImage = {8, 8, 2};
inline constexpr size_t kFeatures = 128;

inline std::unique_ptr<FakeDevice> Device(const FakeDeviceOptions& options) {
  auto device = FakeDevice::Make(options);
  REQUIRE(device.ok());
  return *std::move(device);
}

// What a host can do wrong with its device.
enum class HostMistake {
  kNone,
  // It begins a step before the previous step's contribution was answered.
  kNextCopyBeforeWait,
  // It writes weights that are still on their way to the device.
  kWeightsOverwritten,
  // It loads the next batch into memory that the previous batch is still being copied from.
  kBatchBufferReused,
};

// Uses vectors as an exchange does. Weights are there when they are asked for, and not before. A
// final gradient leaves at once. It may be read until the next forward pass asks for its weights,
// and the new weights may come at any time until then.
class Exchanging : public TrainObserver {
 public:
  // `device` is told what the host uses; null on a CPU.
  Exchanging(const std::vector<float>& newest, std::vector<float>& weights,
             std::vector<float>& contribution, FakeDevice* device = nullptr,
             HostMistake mistake = HostMistake::kNone)
      : newest_(newest),
        weights_(weights),
        contribution_(contribution),
        device_(device),
        mistake_(mistake),
        sent(newest.size(), -7) {}

  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    notes.push_back('b');
    if (device_ != nullptr) HostEnds(elements);
    Copy(elements, newest_, weights_);
    if (device_ != nullptr) Err(elements);
    return absl::OkStatus();
  }
  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    notes.push_back('l');
    loss = loss_sum;
    return examples > 0 && fail ? absl::UnavailableError("the servers") : absl::OkStatus();
  }
  absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
    notes.push_back('f');
    Copy(elements, contribution_, sent);
    if (device_ != nullptr) HostBegins(elements);
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

  void HostBegins(std::span<const ElementRange> elements) {
    for (const ElementRange& range : elements) {
      device_->HostBegins(std::span(contribution_).subspan(range.offset, range.count), false);
      device_->HostBegins(std::span(weights_).subspan(range.offset, range.count), true);
    }
  }
  void HostEnds(std::span<const ElementRange> elements) {
    if (mistake_ == HostMistake::kNextCopyBeforeWait) return;
    for (const ElementRange& range : elements) {
      device_->HostEnds(std::span(contribution_).subspan(range.offset, range.count));
      device_->HostEnds(std::span(weights_).subspan(range.offset, range.count));
    }
  }
  void Err(std::span<const ElementRange> elements) {
    if (mistake_ == HostMistake::kWeightsOverwritten && !last_.empty()) {
      device_->HostBegins(last_, true);
      device_->HostEnds(last_);
    }
    if (mistake_ == HostMistake::kBatchBufferReused && last_.empty()) {
      device_->HostBegins(features, true);
      device_->HostEnds(features);
    }
    last_ = std::span(weights_).subspan(elements.front().offset, elements.front().count);
  }

  const std::vector<float>& newest_;
  std::vector<float>& weights_;
  std::vector<float>& contribution_;
  FakeDevice* const device_;
  const HostMistake mistake_;
  // The weights whose reading was last permitted.
  std::span<float> last_;

 public:
  std::span<float> features;
  bool fail = false;
  std::string notes;
  double loss = -1;
  std::vector<float> sent;
};

// The results of a few steps and an evaluation.
struct Outcome {
  absl::Status status;
  std::vector<double> losses;
  std::vector<float> sent;
  std::string notes;
  Model::Evaluation evaluation;
};

inline bool Same(const Outcome& a, const Outcome& b) {
  return a.losses == b.losses && a.notes == b.notes && a.sent.size() == b.sent.size() &&
         std::memcmp(a.sent.data(), b.sent.data(), a.sent.size() * sizeof(float)) == 0 &&
         a.evaluation.loss_sum == b.evaluation.loss_sum &&
         a.evaluation.correct == b.evaluation.correct &&
         a.evaluation.in_top5 == b.evaluation.in_top5 &&
         a.evaluation.error.mae() == b.evaluation.error.mae();
}

struct Job {
  std::string model = kEveryLayer;
  ImageShape input = kImage;
  uint32_t classes = 3;
  uint64_t steps = 2;
  size_t batch = 4;
  bool evaluates = true;
};

inline Outcome Train(const Job& job, Backend& backend, HostMistake mistake = HostMistake::kNone) {
  const auto model = BuildModel(job.model, job.input, job.classes, backend);
  std::vector<float> newest = InitialWeights(*model, 5);
  std::vector<float> weights(newest.size()), contribution(newest.size());
  const PinnedMemory weights_pinned = backend.Pin(weights);
  const PinnedMemory contribution_pinned = backend.Pin(contribution);
  Outcome outcome;
  Exchanging observer(newest, weights, contribution, dynamic_cast<FakeDevice*>(&backend), mistake);
  for (uint64_t step = 0; step < job.steps && outcome.status.ok(); ++step) {
    Batch batch =
        RandomBatch(job.batch + step % 2, job.input.elements(), std::max(job.classes, 1u), step);
    std::fill(weights.begin(), weights.end(), std::numeric_limits<float>::infinity());
    // Makes every step different from the others.
    for (float& weight : newest) weight *= 0.75f;
    observer.features = batch.features;
    const auto loss = model->Train(batch, weights, {1, step, 0}, contribution, &observer);
    // Queued work must not read the batch any more.
    std::fill(batch.features.begin(), batch.features.end(), 1e30f);
    outcome.status = loss.status();
    outcome.losses.push_back(loss.ok() ? *loss : 0);
    outcome.losses.push_back(observer.loss);
    outcome.sent.insert(outcome.sent.end(), observer.sent.begin(), observer.sent.end());
  }
  outcome.notes = observer.notes;
  if (!outcome.status.ok() || !job.evaluates) return outcome;
  const auto evaluation =
      model->Evaluate(RandomBatch(300, job.input.elements(), std::max(job.classes, 1u), 9), newest);
  outcome.status = evaluation.status();
  if (evaluation.ok()) outcome.evaluation = *evaluation;
  return outcome;
}

inline Outcome OnCpu(const Job& job) {
  const auto backend = TestBackend();
  const Outcome outcome = Train(job, *backend);
  REQUIRE(outcome.status.ok());
  return outcome;
}

}  // namespace leeway::testing
