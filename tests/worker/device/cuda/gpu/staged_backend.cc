#include "tests/worker/device/cuda/gpu/staged_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tests/worker/device/wrapped_backend.h"

namespace leeway::testing {
namespace {

constexpr size_t kAlign = 64;
constexpr size_t kFromSystemBytes = size_t{64} << 20;
constexpr size_t kAlignFloats = kAlign / sizeof(float);

// The operands of one kernel. They are on the device as long as this object lives.
class Stage {
 public:
  explicit Stage(Backend& device) : device_(device) {}
  ~Stage() {
    for (const auto& [host, staged] : staged_) {
      if (!staged.written || staged.device == nullptr) continue;
      device_.CopyToHost(Stream::kCompute, staged.device, {host, staged.count});
    }
    (void)device_.Await(device_.Record(Stream::kCompute));
  }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Operands with the same address share memory on the device, too.
  void Add(const Operand& operand) {
    if (operand.data == nullptr || operand.extent() == 0) return;
    Staged& staged = staged_[static_cast<float*>(operand.data)];
    staged.count = std::max(staged.count, operand.extent());
    staged.written = staged.written || operand.written;
  }
  void CopyUp() {
    for (auto& [host, staged] : staged_) {
      auto memory = device_.Allocate(staged.count + kAlignFloats);
      // The caller's test then fails by the result.
      if (!memory.ok()) continue;
      staged.memory = *std::move(memory);
      staged.device =
          staged.memory.get() + reinterpret_cast<uintptr_t>(host) % kAlign / sizeof(float);
      device_.CopyToDevice(Stream::kCompute, {host, staged.count}, staged.device);
    }
  }
  // Returns null for memory that is no operand, which the kernel must not touch.
  float* Of(void* host) const {
    const auto found = staged_.find(static_cast<float*>(host));
    return found == staged_.end() ? nullptr : found->second.device;
  }

 private:
  struct Staged {
    size_t count = 0;
    bool written = false;
    DeviceMemory memory;
    float* device = nullptr;
  };

  Backend& device_;
  // By address on the host.
  std::map<float*, Staged> staged_;
};

class StagedBackend final : public WrappedBackend {
 public:
  explicit StagedBackend(std::unique_ptr<Backend> device) : WrappedBackend(std::move(device)) {}

  absl::StatusOr<DeviceMemory> Allocate(size_t count) override {
    const size_t bytes = (count * sizeof(float) + kAlign - 1) / kAlign * kAlign;
    void* const data = std::aligned_alloc(kAlign, std::max(bytes, kAlign));
    if (data == nullptr) return absl::ResourceExhaustedError("no memory");
    // Larger pieces come directly from the system, which promises more memory than there is.
    if (bytes < kFromSystemBytes) std::memset(data, 0, bytes);
    return DeviceMemory(static_cast<float*>(data), DeviceFree{this});
  }
  bool shares_host_memory() const override { return false; }
  bool cuts_products() const override { return wrapped().cuts_products(); }
  void CopyToDevice(Stream, std::span<const float> host, float* device) override {
    std::copy(host.begin(), host.end(), device);
  }
  void CopyToHost(Stream, const float* device, std::span<float> host) override {
    std::copy_n(device, host.size(), host.begin());
  }
  StreamEvent Record(Stream) override { return {}; }
  void Wait(Stream, StreamEvent) override {}
  bool Done(StreamEvent) override { return wrapped().status().ok(); }
  absl::Status Await(StreamEvent) override { return wrapped().status(); }
  absl::Status status() const override { return wrapped().status(); }

 protected:
  void Free(float* data) override { std::free(data); }
  void Run(const char* what, const std::vector<Operand>& operands, Kernel kernel) override {
    Stage stage(wrapped());
    for (const Operand& operand : operands) stage.Add(operand);
    stage.CopyUp();
    kernel(Places([&stage](void* host) { return stage.Of(host); }));
  }
};

}  // namespace

std::unique_ptr<Backend> MakeStagedBackend(std::unique_ptr<Backend> device) {
  return std::make_unique<StagedBackend>(std::move(device));
}

}  // namespace leeway::testing
