// A device that is none: what a GPU would do wrong it does, too, and says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/worker/device/fake_streams.h"
#include "tests/worker/device/happens_before.h"
#include "tests/worker/device/split_memory.h"
#include "worker/compute/backend.h"

namespace leeway::testing {

class FakeDevice;

struct FakeDeviceOptions {
  // Of the order in which streams run.
  uint64_t seed = 0;
  size_t memory_bytes = size_t{64} << 20;
  // The CPU's that computes the kernels: its bits are the device's.
  uint32_t threads = 1;
  // How much of what may run runs before somebody waits for it: 0 for nothing, below 1 for nearly
  // all; nothing: drawn by the seed.
  std::optional<double> eagerness = std::nullopt;
  // The so-manieth call, from 0, is forgotten: as if it were not in the code.
  std::optional<uint64_t> forget_wait = std::nullopt;
  // Of those of Done whose answer is no.
  std::optional<uint64_t> forget_not_yet = std::nullopt;
  std::optional<uint64_t> forget_await = std::nullopt;
  // The so-manieth piece of work, from 0, fails, and with it the device.
  std::optional<uint64_t> fail = std::nullopt;
  // Called when the device goes.
  std::function<void(const FakeDevice&)> on_end = nullptr;
};

// Computes what the CPU's backend computes, in memory of its own, late, and in any order that
// streams and events allow. It finds
//   - work that is in no order with other work on the same memory, on every seed;
//   - kernels that read what nobody has written, and memory of the host's among a kernel's;
//   - copies whose host memory was touched before they were done;
//   - memory that is freed while work on it is queued.
// The first of these is its status(), as an error of a GPU would be.
class FakeDevice final : public Backend {
 public:
  static absl::StatusOr<std::unique_ptr<FakeDevice>> Make(const FakeDeviceOptions& options);
  ~FakeDevice() override {
    if (options_.on_end) options_.on_end(*this);
  }

  // Calls so far.
  uint64_t waits() const { return waits_; }
  uint64_t not_yet() const { return not_yet_; }
  uint64_t awaits() const { return awaits_; }
  // Pieces of work that were queued so far.
  uint64_t queued() const { return queued_; }
  // Bytes that were copied in either direction so far.
  uint64_t bytes_up() const { return bytes_up_; }
  uint64_t bytes_down() const { return bytes_down_; }

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override;
  bool shares_host_memory() const override { return false; }

  void CopyToDevice(Stream stream, std::span<const float> host, float* device) override;
  void CopyToHost(Stream stream, const float* device, std::span<float> host) override;
  StreamEvent Record(Stream stream) override;
  void Wait(Stream stream, StreamEvent event) override;
  bool Done(StreamEvent event) override;
  absl::Status Await(StreamEvent event) override;
  absl::Status status() const override { return status_; }

  void AddDifference(size_t count, float scale, const float* a, const float* b, const float* base,
                     float* out) override;
  void Update(const VectorUpdate& update, float* finite) override;

  void Fill(size_t count, float value, float* y) override;
  void Copy(size_t count, const float* x, float* y) override;
  void Multiply(size_t count, const float* x, const float* y, float* z) override;
  void FillRows(size_t rows, size_t columns, const float* row, float* y) override;
  void AddRows(size_t rows, size_t columns, const float* row, float* y) override;
  void SumRows(size_t rows, size_t columns, const float* x, float* sum) override;
  void Gemm(const GemmShape& shape, Op op_a, const float* a, Op op_b, const float* b,
            bool accumulate, float* c) override;
  size_t Conv2dScratch(const Conv2dShape& shape, size_t batch) const override;
  void Conv2dForward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                     const float* bias, float* scratch, float* y) override;
  void Conv2dBackward(const Conv2dShape& shape, size_t batch, const float* x, const float* weight,
                      const float* dy, float* scratch, float* dweight, float* dbias,
                      float* dx) override;
  void MaxPoolForward(const PoolShape& shape, size_t batch, const float* x, float* winners,
                      float* y) override;
  void MaxPoolBackward(const PoolShape& shape, size_t batch, const float* winners, const float* dy,
                       float* dx) override;
  void AvgPoolForward(const PoolShape& shape, size_t batch, const float* x, float* y) override;
  void AvgPoolBackward(const PoolShape& shape, size_t batch, const float* dy, float* dx) override;
  void ReluForward(size_t count, const float* x, float* y) override;
  void ReluBackward(size_t count, const float* y, const float* dy, float* dx) override;
  void GeluForward(size_t count, const float* x, float* y) override;
  void GeluBackward(size_t count, const float* x, const float* dy, float* dx) override;
  void TanhForward(size_t count, const float* x, float* y) override;
  void TanhBackward(size_t count, const float* y, const float* dy, float* dx) override;
  void DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x, float* mask,
                      float* y) override;
  void BatchNormForward(const BatchNormOptions& options, const BatchNormWeights& weights,
                        const float* x, float* saved, float* batch_mean, float* batch_var,
                        float* y) override;
  void BatchNormInference(const BatchNormOptions& options, const BatchNormWeights& weights,
                          const float* x, float* y) override;
  void BatchNormBackward(const BatchNormOptions& options, const float* gamma, const float* x,
                         const float* saved, const float* dy, float* dgamma, float* dbeta,
                         float* dx) override;
  void SoftmaxCrossEntropy(size_t batch, size_t classes, const float* scores, const float* labels,
                           LossSum* sum, float* dscores) override;
  void Logistic(size_t batch, const float* scores, const float* labels, LossSum* sum,
                float* dscores) override;
  void Squared(size_t batch, const float* scores, const float* labels, LossSum* sum,
               float* dscores) override;

 protected:
  void Free(float* data) override;

 private:
  FakeDevice(const FakeDeviceOptions& options, std::unique_ptr<SplitMemory> memory,
             std::unique_ptr<Backend> cpu)
      : options_(options),
        memory_(std::move(memory)),
        cpu_(std::move(cpu)),
        streams_(options.seed, options.eagerness) {}

  template <typename T>
  static Access Reads(const T* data, size_t count = 1) {
    return {data, count * sizeof(T), false};
  }
  template <typename T>
  static Access Writes(const T* data, size_t count = 1) {
    return {data, count * sizeof(T), true};
  }
  BatchNormWeights Inside(const BatchNormWeights& weights) const;

  // Queues work of the compute stream on the device's memory.
  void Kernel(const char* what, std::vector<Access> accesses, std::function<void()> compute);
  void Queue(Stream stream, const char* what, const std::vector<Access>& accesses,
             std::function<void()> work);
  // The accesses' memory is the device's, and what is read there has been written.
  void CheckBeforeRun(const char* what, const std::vector<Access>& accesses);
  void Fail(absl::Status why);

  const FakeDeviceOptions options_;
  const std::unique_ptr<SplitMemory> memory_;
  const std::unique_ptr<Backend> cpu_;
  FakeStreams streams_;
  HappensBefore order_;
  absl::Status status_;
  uint64_t waits_ = 0;
  uint64_t not_yet_ = 0;
  uint64_t awaits_ = 0;
  uint64_t queued_ = 0;
  uint64_t bytes_up_ = 0;
  uint64_t bytes_down_ = 0;
};

}  // namespace leeway::testing
