// The interface of layers. Each layer has a file of its own; registry.h says how to add one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/job.pb.h"
#include "worker/compute/backend.h"
#include "worker/data/shape.h"

namespace leeway {

// One of a layer's tensors: a range of the model's flat vector.
struct TensorPlan {
  // The tensor's own name, such as "weight". In the schema it is LAYER/weight.
  std::string name;
  std::vector<uint64_t> shape;
  // Update rules may treat different kinds differently.
  v1::TensorKind kind = v1::TENSOR_KIND_WEIGHT;
  // If false, the tensor is averaged over batches and workers (running statistics).
  bool trained = true;
  // For an averaged tensor, one batch moves it by this share of the difference to the batch's own
  // value; in (0, 1].
  double momentum = 0;
  // The initialiser. Without one, every element starts as `constant`.
  std::optional<v1::Initializer> initializer = std::nullopt;
  uint64_t fan_in = 0;
  uint64_t fan_out = 0;
  // The standard deviation for INITIALIZER_NORMAL.
  double deviation = 0;
  float constant = 0;

  uint64_t elements() const {
    uint64_t product = 1;
    for (uint64_t side : shape) product *= side;
    return product;
  }
};

// Identifies every random draw of one worker's step.
struct Draw {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t rank = 0;
};

// The pass of one batch through one layer. Pointers are to device memory.
struct Pass {
  // The value of `panel` for all panels at once.
  static constexpr size_t kWhole = std::numeric_limits<size_t>::max();

  Backend& backend;
  // The number of examples, at least 1.
  size_t batch = 0;
  // If false, the layer computes as in evaluation, and saves nothing for Backward.
  bool training = false;
  Draw draw;
  // The index of the layer in the model.
  uint32_t layer = 0;
  // The index of a panel of Layer::panel_cuts(), or kWhole.
  size_t panel = 0;
  // Both are in the order of Layer::tensors(). Contributions exist in training only, and are
  // overwritten: Backward writes those of trained tensors. Forward writes those of averaged
  // tensors, which are the batch's own values. Training does not read the weights of averaged
  // tensors, because they may be in flight to or from the servers.
  std::span<const float* const> weights;
  std::span<float* const> contributions;
  // If true, the contributions already have another layer's part, and Backward adds to it. Only for
  // layers that can be tied.
  bool accumulate = false;
  // `saved` has Layer::saved() floats that live from Forward to Backward. `scratch` has
  // Layer::scratch() floats that live within either.
  float* saved = nullptr;
  float* scratch = nullptr;
  // A layer that cannot compute writes the reason here. Null if the caller does not need it.
  absl::Status* failure = nullptr;
};

// Says where a layer's output is stored.
enum class Placement {
  // The output has its own memory.
  kOwn,
  // The output may overwrite its input (y == x, dx == dy). The model gives it its own memory if
  // others still read the input.
  kInPlace,
  // The output is the input in another shape. Neither Forward nor Backward is called.
  kView,
};

// Immutable once made; all state is in Pass. Gradients are of the mean loss over the batch.
class Layer {
 public:
  Layer(const ImageShape& input, const ImageShape& output) : input_(input), output_(output) {}
  virtual ~Layer() = default;

  // The shapes of one example.
  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }

  virtual std::vector<TensorPlan> tensors() const { return {}; }
  // The element numbers, ascending, at which the trained tensors, laid end to end, are cut into
  // panels. The weights of one panel may still be in transfer, and its gradient may be sent, while
  // another one is computed. Cuts order additions, so they may depend on the layer's shape only. A
  // layer with cuts must not have averaged tensors.
  virtual std::vector<uint64_t> panel_cuts() const { return {}; }
  virtual Placement placement() const { return Placement::kOwn; }
  // Whether Backward reads y, so that no later layer may overwrite it.
  virtual bool reads_output() const { return false; }
  virtual size_t saved(size_t batch) const { return 0; }
  virtual size_t scratch(const Backend& backend, size_t batch) const { return 0; }
  // Whether later layers may share its weights. The shape of the first tensor decides which layers
  // can.
  virtual bool can_be_tied() const { return false; }
  // If it is not 0, all elements of x must be whole numbers below it, which Model::Train checks.
  virtual uint64_t tokens() const { return 0; }
  // Whether the layer computes in the host's memory.
  virtual bool needs_host_memory() const { return false; }
  // The floating-point operations of one example's forward matrix products.
  virtual double flops() const { return 0; }

  // Forward computes x [batch x input] -> y [batch x output]. Forward and Backward are called once
  // for each panel, in ascending order, or once for the whole layer. A call concerns its own panel
  // only: it does not read the weights of other panels, and does not write their contributions.
  virtual void Forward(const Pass& pass, const float* x, float* y) const = 0;
  // Computes dy -> dx. dx is null if it is not needed. dy is not changed, unless dx is the same
  // memory, which is possible for a layer with Placement::kInPlace.
  virtual void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                        float* dx) const = 0;

 private:
  const ImageShape input_;
  const ImageShape output_;
};

}  // namespace leeway
