#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"
#include "worker/layers/registry.h"

namespace leeway {
namespace {

// Looks up a row of the weight [vocabulary x width] for each token.
class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(const v1::Embedding& config, const ImageShape& input)
      : Layer(input, {input.height, input.width, config.width()}),
        vocabulary_(config.vocabulary()),
        deviation_(config.deviation()) {}

  std::vector<TensorPlan> tensors() const override {
    return {{.name = "weight",
             .shape = {vocabulary_, output().channels},
             .kind = v1::TENSOR_KIND_EMBEDDING,
             .initializer = v1::INITIALIZER_NORMAL,
             .fan_in = vocabulary_,
             .fan_out = output().channels,
             .deviation = deviation_}};
  }
  bool can_be_tied() const override { return true; }
  uint64_t tokens() const override { return vocabulary_; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    pass.backend.EmbedForward(Of(pass.batch), x, pass.weights[0], y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    pass.backend.EmbedBackward(Of(pass.batch), x, dy, pass.accumulate, pass.contributions[0]);
  }

 private:
  EmbedShape Of(size_t batch) const {
    return {batch * input().elements(), vocabulary_, output().channels};
  }

  const size_t vocabulary_;
  const double deviation_;
};

// Computes x + weight, with weight [positions x channels].
class PositionEmbeddingLayer final : public Layer {
 public:
  PositionEmbeddingLayer(const ImageShape& shape, double deviation)
      : Layer(shape, shape), deviation_(deviation) {}

  std::vector<TensorPlan> tensors() const override {
    const uint64_t positions = uint64_t{input().height} * input().width;
    return {{.name = "weight",
             .shape = {positions, input().channels},
             .kind = v1::TENSOR_KIND_EMBEDDING,
             .initializer = v1::INITIALIZER_NORMAL,
             .fan_in = positions,
             .fan_out = input().channels,
             .deviation = deviation_}};
  }
  Placement placement() const override { return Placement::kInPlace; }

  void Forward(const Pass& pass, const float* x, float* y) const override {
    const size_t elements = input().elements();
    if (x != y) pass.backend.Copy(pass.batch * elements, x, y);
    pass.backend.AddRows(pass.batch, elements, pass.weights[0], y);
  }

  void Backward(const Pass& pass, const float* x, const float* y, float* dy,
                float* dx) const override {
    const size_t elements = input().elements();
    pass.backend.SumRows(pass.batch, elements, dy, pass.contributions[0]);
    if (dx != nullptr && dx != dy) pass.backend.Copy(pass.batch * elements, dy, dx);
  }

 private:
  const double deviation_;
};

}  // namespace

LayerOr MakeEmbedding(const v1::Layer& config, const ImageShape& input) {
  const v1::Embedding& embedding = config.embedding();
  RETURN_IF_ERROR(CheckRange("vocabulary", embedding.vocabulary(), 1, 16'000'000));
  RETURN_IF_ERROR(CheckRange("width", embedding.width(), 1, 65'536));
  if (input.channels != 1 && !input.flat()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "reads one token for each position, but the input has ", input.channels, " channels"));
  }
  // If the input is a row of features, it is a row of tokens.
  const ImageShape tokens = input.flat() ? ImageShape{input.channels, 1, 1} : input;
  return std::make_unique<EmbeddingLayer>(embedding, tokens);
}

LayerOr MakePositionEmbedding(const v1::Layer& config, const ImageShape& input) {
  return std::make_unique<PositionEmbeddingLayer>(input, config.position_embedding().deviation());
}

}  // namespace leeway
