// The interface of layers. Each layer has a file of its own, but activation.cc has all activation
// functions; registry.h says how to add one.
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
  // The kind of the tensor. Update rules may treat kinds differently.
  v1::TensorKind kind = v1::TENSOR_KIND_WEIGHT;
  // True if the tensor is trained. If false, the tensor holds running statistics, which are
  // averaged over batches and workers.
  bool trained = true;
  // For an averaged tensor: a batch moves the tensor towards the batch's own value by this share of
  // the difference, in (0, 1].
  double momentum = 0;
  // The initialiser. If absent, every element starts as `constant`.
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

// Identifies the random draws of one worker's step.
struct Draw {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t rank = 0;
};

// The pass of one batch through one layer. The pointers are to device memory.
struct Pass {
  // The value of `panel` that stands for all panels at once.
  static constexpr size_t kWhole = std::numeric_limits<size_t>::max();

  Backend& backend;
  // The number of examples, at least 1.
  size_t batch = 0;
  // True if the pass is for training. If false, the layer computes as in evaluation, and saves
  // nothing for Backward.
  bool training = false;
  Draw draw;
  // The index of the layer in the model.
  uint32_t layer = 0;
  // The index of a panel of Layer::panel_cuts(), or kWhole.
  size_t panel = 0;
  // The layer's weights and contributions, both in the order of Layer::tensors(). Contributions
  // exist in training only, and are overwritten. Backward writes the contributions of trained
  // tensors. Forward writes the contributions of averaged tensors, which are the batch's own
  // values. Training does not read the weights of averaged tensors, because these weights may be on
  // their way to or from the servers.
  std::span<const float* const> weights;
  std::span<float* const> contributions;
  // If true, the contributions already hold the gradient from another layer that shares the
  // weights, and Backward adds to them. Only used for layers that can be tied.
  bool accumulate = false;
  // `saved` points to Layer::saved() floats, which keep their values from Forward to Backward.
  // `scratch` points to Layer::scratch() floats, which keep their values within one call only.
  float* saved = nullptr;
  float* scratch = nullptr;
  // A layer that fails writes the reason here. Null if the caller does not want the reason.
  absl::Status* failure = nullptr;
};

// Where a layer's output is stored.
enum class Placement {
  // The output has its own memory.
  kOwn,
  // The output may overwrite the layer's input (y == x, dx == dy). If other nodes still read the
  // input, the model gives the output memory of its own.
  kInPlace,
  // The output is the input with another shape. Neither Forward nor Backward is called.
  kView,
};

// Immutable once made, because all state is in Pass. Gradients are of the mean loss over the batch.
class Layer {
 public:
  Layer(const ImageShape& input, const ImageShape& output) : input_(input), output_(output) {}
  virtual ~Layer() = default;

  // The shapes of one example.
  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }

  virtual std::vector<TensorPlan> tensors() const { return {}; }
  // Returns the element numbers, in ascending order, at which the layer is divided into panels. The
  // numbers count the elements of all trained tensors, laid end to end. The weights of one panel
  // may still be in transfer, and its gradient may be sent, while another panel is computed. The
  // cuts change the order of additions, so they must depend on the layer's shape only. A layer with
  // cuts must not have averaged tensors.
  virtual std::vector<uint64_t> panel_cuts() const { return {}; }
  virtual Placement placement() const { return Placement::kOwn; }
  // Returns true if Backward reads y, so that no later layer may overwrite y.
  virtual bool reads_output() const { return false; }
  virtual size_t saved(size_t batch) const { return 0; }
  virtual size_t scratch(const Backend& backend, size_t batch) const { return 0; }
  // Returns true if later layers may share this layer's weights. The shape of the layer's first
  // tensor decides which layers can share them.
  virtual bool can_be_tied() const { return false; }
  // Returns the size of the vocabulary if the layer reads tokens, otherwise 0. All elements of x
  // must then be whole numbers below this size; Model::Train checks them.
  virtual uint64_t tokens() const { return 0; }
  // Returns true if the layer computes in the host's memory.
  virtual bool needs_host_memory() const { return false; }
  // Returns the number of floating-point operations of the forward matrix products for one example.
  virtual double flops() const { return 0; }

  // Forward computes x [batch x input] -> y [batch x output]. Forward and Backward are called once
  // for each panel, in ascending order, or once for the whole layer. A call for one panel does not
  // read the weights of other panels, and does not write their contributions.
  virtual void Forward(const Pass& pass, const float* x, float* y) const = 0;
  // Backward computes dy -> dx. dx is null if it is not needed. Backward does not change dy, unless
  // dx is the same memory, as may be the case for a layer with Placement::kInPlace.
  virtual void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                        float* dx) const = 0;

 private:
  const ImageShape input_;
  const ImageShape output_;
};

}  // namespace leeway
