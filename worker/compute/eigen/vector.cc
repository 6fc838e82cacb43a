// Kernels on whole vectors of a model: the arithmetic of exchanges, and local optimizers.
#include <vector>

#include "common/codec/codec.h"
#include "common/update/apply.h"
#include "worker/compute/eigen/eigen_backend.h"
#include "worker/compute/eigen/vectors.h"

namespace leeway {

void EigenBackend::AddDifference(size_t count, float scale, const float* a, const float* b,
                                 const float* base, float* out) {
  if (base == nullptr) {
    MapElements(
        0, count, out, [scale](float x, float y) { return scale * (x - y); }, a, b);
    return;
  }
  MapElements(
      0, count, out, [scale](float x, float y, float z) { return z + scale * (x - y); }, a, b,
      base);
}

void EigenBackend::Update(const VectorUpdate& update, float* finite) {
  const FloatPayload payload = FloatPayload::Of({update.contribution, update.count});
  const FloatPayload* const contributions[] = {&payload};
  const float coefficients[] = {1.0f};
  const std::vector<const float*> slots(update.slots.begin(), update.slots.end());
  std::vector<AveragedMove> moves;
  for (const VectorUpdate::Average& average : update.averages) {
    moves.push_back({average.end, {&average.share, 1}});
  }
  *finite = ApplyUpdate({.rule = update.rule,
                         .step = update.step,
                         .contributions = contributions,
                         .coefficients = coefficients,
                         .count = update.count,
                         .trained = update.trained,
                         .averaged = moves,
                         .parts = update.parts,
                         .weights_in = update.weights,
                         .weights_out = update.weights,
                         .slots_in = slots,
                         .slots_out = update.slots})
                ? 1.0f
                : 0.0f;
}

void EigenBackend::Scale(size_t count, float factor, float* x, float* finite) {
  if (factor != 1) {
    MapElements(
        0, count, x, [factor](float value) { return factor * value; }, x);
  }
  if (finite != nullptr && FloatPayload::Of({x, count}).FirstNonFinite() != count) *finite = 0;
}

void EigenBackend::Encode(GroupFormat format, size_t count, const float* values, float* residual,
                          float* encoded) {
  const Codec& codec = CodecOf(format);
  codec.Encode({values, count}, {residual, count},
               {reinterpret_cast<uint8_t*>(encoded), codec.MaxBytes(count)});
}

}  // namespace leeway
