// What a layer is. One file a layer; registry.h says how they are found.
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
  // "weight"; the schema says LAYER/weight.
  std::string name;
  std::vector<uint64_t> shape;
  // Update rules may treat kinds differently.
  v1::TensorKind kind = v1::TENSOR_KIND_WEIGHT;
  // False: averaged instead, over batches and workers (running statistics).
  bool trained = true;
  // For an averaged tensor: the share of the way to the batch's own value by which one batch moves
  // it, in (0, 1].
  double momentum = 0;
  // How it starts; without an initialiser, every element is `constant`.
  std::optional<v1::Initializer> initializer = std::nullopt;
  uint64_t fan_in = 0;
  uint64_t fan_out = 0;
  // Of INITIALIZER_NORMAL.
  double deviation = 0;
  float constant = 0;

  uint64_t elements() const {
    uint64_t product = 1;
    for (uint64_t side : shape) product *= side;
    return product;
  }
};

// Names every random draw of one worker's step.
struct Draw {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t rank = 0;
};

// One batch on its way through one layer. Pointers are device memory.
struct Pass {
  // In place of a panel: all of them at once.
  static constexpr size_t kWhole = std::numeric_limits<size_t>::max();

  Backend& backend;
  // Examples, at least 1.
  size_t batch = 0;
  // False: as evaluated, nothing is remembered.
  bool training = false;
  Draw draw;
  // The layer's place in the model.
  uint32_t layer = 0;
  // Of Layer::panel_cuts().
  size_t panel = 0;
  // In the order of Layer::tensors(). Contributions exist in training only, and are written whole:
  // by Backward for trained tensors, and by Forward for averaged ones, with the batch's own value.
  // Training does not read the weights of averaged tensors, because these may be in flight to or
  // from the servers.
  std::span<const float* const> weights;
  std::span<float* const> contributions;
  // Another layer has left its part of the contributions there: Backward adds to it. For layers
  // that can be tied only.
  bool accumulate = false;
  // Layer::saved() floats that live from Forward to Backward, and Layer::scratch() that live within
  // either.
  float* saved = nullptr;
  float* scratch = nullptr;
  // Where a layer says why it could not compute; null: nobody asks.
  absl::Status* failure = nullptr;
};

// Where a layer's output is stored.
enum class Placement {
  // In memory of its own.
  kOwn,
  // May be in its input's place (y == x, dx == dy); the model gives it its own where others still
  // read the input.
  kInPlace,
  // It is its input in another shape. Neither Forward nor Backward is called.
  kView,
};

// Immutable once made: what changes is in Pass. Gradients are of the mean loss over the batch.
class Layer {
 public:
  Layer(const ImageShape& input, const ImageShape& output) : input_(input), output_(output) {}
  virtual ~Layer() = default;

  // Of one example.
  const ImageShape& input() const { return input_; }
  const ImageShape& output() const { return output_; }

  virtual std::vector<TensorPlan> tensors() const { return {}; }
  // Where the trained tensors, laid end to end, are cut into panels: ascending element numbers. The
  // weights of one panel may still be on their way, and its gradient be sent, while another is
  // computed. The cuts order additions, so they may depend on the layer's shape only. A layer with
  // cuts has no averaged tensors.
  virtual std::vector<uint64_t> panel_cuts() const { return {}; }
  virtual Placement placement() const { return Placement::kOwn; }
  // Backward reads y: no later layer may write in its place.
  virtual bool reads_output() const { return false; }
  virtual size_t saved(size_t batch) const { return 0; }
  virtual size_t scratch(const Backend& backend, size_t batch) const { return 0; }
  // Its weights may be those of later layers, too; the first tensor's shape says which layers.
  virtual bool can_be_tied() const { return false; }
  // x holds whole numbers below this, which Model::Train checks; 0: any numbers.
  virtual uint64_t tokens() const { return 0; }
  // It computes in the host's memory.
  virtual bool needs_host_memory() const { return false; }
  // Floating-point operations of one example's forward matrix products.
  virtual double flops() const { return 0; }

  // Both are called once for each panel, in ascending order, or once for the whole layer. Each call
  // touches its own panel only: it reads no other panel's weights, and writes no other panel's
  // contributions. x [batch x input] -> y [batch x output].
  virtual void Forward(const Pass& pass, const float* x, float* y) const = 0;
  // dy -> dx; dx is null if it is not needed. dy stays, unless dx is in its place, as it may be for
  // a layer that works in place.
  virtual void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                        float* dx) const = 0;

 private:
  const ImageShape input_;
  const ImageShape output_;
};

}  // namespace leeway
