#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/draws.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Multi-head self-attention (Vaswani et al. 2017, section 3.2.2) over the positions of an example.
// The weight for queries, keys and values is [channels x 3 channels]. The weight for the output is
// [channels x channels].
class AttentionLayer final : public Layer {
 public:
  AttentionLayer(const v1::Attention& config, const ImageShape& shape)
      : Layer(shape, shape),
        shape_{.positions = size_t{shape.height} * shape.width,
               .heads = config.heads(),
               .width = shape.channels / config.heads(),
               .causal = config.causal()},
        config_(config) {}

  std::vector<TensorPlan> tensors() const override {
    const double deviation = config_.deviation();
    const double projection =
        config_.has_projection_deviation() ? config_.projection_deviation() : deviation;
    std::vector<TensorPlan> plans = {Weight("qkv_weight", 3, deviation)};
    if (config_.bias()) plans.push_back(Bias("qkv_bias", shape_.qkv()));
    plans.push_back(Weight("out_weight", 1, projection));
    if (config_.bias()) plans.push_back(Bias("out_bias", shape_.channels()));
    return plans;
  }

  size_t saved(size_t batch) const override { return Places(*this, batch, nullptr).total; }
  size_t scratch(const Backend& backend, size_t batch) const override {
    return Slopes(*this, batch, nullptr).total;
  }

  double flops() const override {
    const auto rows = static_cast<double>(shape_.positions);
    const auto channels = static_cast<double>(shape_.channels());
    return 2 * rows * channels * (4 * channels + 2 * rows);
  }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const Tensors<const float> weights(*this, pass.weights);
    const Places at(*this, pass.batch, pass.saved);
    Project(pass, x, shape_.channels(), weights.qkv, weights.qkv_bias, shape_.qkv(), at.qkv);
    if (config_.rotary()) pass.backend.Rotate(shape_, pass.batch, false, at.qkv);
    pass.backend.AttentionScores(shape_, pass.batch, at.qkv, at.weights);
    const float* mixed_by = at.weights;
    if (pass.training && Drops()) {
      const auto rate = static_cast<float>(config_.dropout());
      pass.backend.DropoutForward(pass.batch * shape_.weights(), rate, DropoutKeyOf(pass),
                                  at.weights, at.mask, at.dropped);
      mixed_by = at.dropped;
    }
    pass.backend.AttentionMix(shape_, pass.batch, mixed_by, at.qkv, at.mixed);
    Project(pass, at.mixed, shape_.channels(), weights.out, weights.out_bias, shape_.channels(), y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    const Tensors<const float> weights(*this, pass.weights);
    const Tensors<float> slopes(*this, pass.contributions);
    const Places at(*this, pass.batch, pass.saved);
    const Slopes to(*this, pass.batch, pass.scratch);
    ProjectBackward(pass, at.mixed, dy, shape_.channels(), weights.out, slopes.out, slopes.out_bias,
                    to.mixed);
    pass.backend.AttentionMixBackward(shape_, pass.batch, Drops() ? at.dropped : at.weights, at.qkv,
                                      to.mixed, to.weights, to.qkv);
    if (Drops()) {
      pass.backend.Multiply(pass.batch * shape_.weights(), to.weights, at.mask, to.weights);
    }
    pass.backend.AttentionScoresBackward(shape_, pass.batch, at.weights, at.qkv, to.weights,
                                         to.qkv);
    if (config_.rotary()) pass.backend.Rotate(shape_, pass.batch, true, to.qkv);
    ProjectBackward(pass, x, to.qkv, shape_.qkv(), weights.qkv, slopes.qkv, slopes.qkv_bias, dx);
  }

 private:
  // The layer's tensors; biases may be null.
  template <typename T>
  struct Tensors {
    Tensors(const AttentionLayer& layer, std::span<T* const> all)
        : qkv(all[0]),
          qkv_bias(layer.config_.bias() ? all[1] : nullptr),
          out(all[layer.config_.bias() ? 2 : 1]),
          out_bias(layer.config_.bias() ? all[3] : nullptr) {}
    T* qkv;
    T* qkv_bias;
    T* out;
    T* out_bias;
  };

  // Divides one allocation into pieces. If there is no memory yet, only adds up the sizes of the
  // pieces.
  class Pieces {
   public:
    explicit Pieces(float* memory) : memory_(memory) {}
    float* Take(size_t count) {
      float* piece = memory_ == nullptr ? nullptr : memory_ + total_;
      total_ += count;
      return piece;
    }
    size_t total() const { return total_; }

   private:
    float* memory_;
    size_t total_ = 0;
  };

  // The values that are saved from Forward to Backward.
  struct Places {
    Places(const AttentionLayer& layer, size_t batch, float* memory) {
      Pieces pieces(memory);
      const AttentionShape& shape = layer.shape_;
      qkv = pieces.Take(layer.Rows(batch) * shape.qkv());
      mixed = pieces.Take(layer.Rows(batch) * shape.channels());
      weights = pieces.Take(batch * shape.weights());
      if (layer.Drops()) {
        mask = pieces.Take(batch * shape.weights());
        dropped = pieces.Take(batch * shape.weights());
      }
      total = pieces.total();
    }
    float* qkv;
    float* mixed;
    float* weights;
    float* mask = nullptr;
    float* dropped = nullptr;
    size_t total;
  };

  // The gradients that Backward needs while it runs.
  struct Slopes {
    Slopes(const AttentionLayer& layer, size_t batch, float* memory) {
      Pieces pieces(memory);
      const AttentionShape& shape = layer.shape_;
      qkv = pieces.Take(layer.Rows(batch) * shape.qkv());
      mixed = pieces.Take(layer.Rows(batch) * shape.channels());
      weights = pieces.Take(batch * shape.weights());
      total = pieces.total();
    }
    float* qkv;
    float* mixed;
    float* weights;
    size_t total;
  };

  TensorPlan Weight(const char* name, uint64_t times, double deviation) const {
    const uint64_t channels = shape_.channels();
    return {.name = name,
            .shape = {channels, times * channels},
            .initializer = v1::INITIALIZER_NORMAL,
            .fan_in = channels,
            .fan_out = times * channels,
            .deviation = deviation};
  }

  static TensorPlan Bias(const char* name, uint64_t units) {
    return {.name = name, .shape = {units}, .kind = v1::TENSOR_KIND_BIAS};
  }

  size_t Rows(size_t batch) const { return batch * shape_.positions; }
  bool Drops() const { return config_.dropout() > 0; }

  // Computes y = x W + b for every position.
  void Project(const Pass& pass, const float* x, size_t inputs, const float* weight,
               const float* bias, size_t units, float* y) const {
    const size_t rows = Rows(pass.batch);
    if (bias != nullptr) pass.backend.FillRows(rows, units, bias, y);
    pass.backend.Gemm({.m = rows, .n = units, .k = inputs}, Op::kAsIs, x, Op::kAsIs, weight,
                      bias != nullptr, y);
  }

  // Computes the gradients of Project. dx may be null if it is not needed.
  void ProjectBackward(const Pass& pass, const float* x, const float* dy, size_t units,
                       const float* weight, float* dweight, float* dbias, float* dx) const {
    const size_t rows = Rows(pass.batch);
    const size_t inputs = shape_.channels();
    pass.backend.Gemm({.m = inputs, .n = units, .k = rows}, Op::kTransposed, x, Op::kAsIs, dy,
                      false, dweight);
    if (dbias != nullptr) pass.backend.SumRows(rows, units, dy, dbias);
    if (dx == nullptr) return;
    pass.backend.Gemm({.m = rows, .n = inputs, .k = units}, Op::kAsIs, dy, Op::kTransposed, weight,
                      false, dx);
  }

  const AttentionShape shape_;
  const v1::Attention config_;
};

}  // namespace

LayerOr MakeAttention(const v1::Layer& config, const ImageShape& input) {
  const v1::Attention& attention = config.attention();
  RETURN_IF_ERROR(CheckRange("heads", attention.heads(), 1, input.channels));
  if (input.channels % attention.heads() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("heads ", attention.heads(), " must divide the ",
                                                   input.channels, " channels"));
  }
  if (attention.rotary() && input.channels / attention.heads() % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rotary rotates pairs of channels, but a head has ", input.channels / attention.heads(),
        ", which is odd: change heads or the width"));
  }
  if (!(attention.dropout() >= 0 && attention.dropout() < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("dropout ", attention.dropout(), " is not in [0, 1)"));
  }
  return std::make_unique<AttentionLayer>(attention, input);
}

}  // namespace leeway
