#include "tests/worker/device/wrapped_backend.h"

#include "common/codec/codec.h"

namespace leeway::testing {
namespace {

BatchNormWeights WeightsAt(const Places& places, const BatchNormWeights& weights) {
  return {places.Of(weights.gamma), places.Of(weights.beta), places.Of(weights.running_mean),
          places.Of(weights.running_var)};
}

}  // namespace

void WrappedBackend::Update(const VectorUpdate& update, float* finite) {
  std::vector<Operand> operands = {In(update.contribution, update.count),
                                   InOut(update.weights, update.count), Out(finite, 1)};
  for (float* const slot : update.slots) operands.push_back(InOut(slot, update.count));
  Run("Update", operands, [=, this](const Places& places) {
    VectorUpdate placed = update;
    placed.contribution = places.Of(update.contribution);
    placed.weights = places.Of(update.weights);
    for (float*& slot : placed.slots) slot = places.Of(slot);
    wrapped_->Update(placed, places.Of(finite));
  });
}

void WrappedBackend::Encode(GroupFormat format, size_t count, const float* values, float* residual,
                            float* encoded) {
  Relay("Encode", &Backend::Encode, format, count, In(values, count), InOut(residual, count),
        Out(encoded, FloatsFor(CodecOf(format).MaxBytes(count))));
}

void WrappedBackend::BatchNormForward(const BatchNormOptions& options,
                                      const BatchNormWeights& weights, const float* x, float* saved,
                                      float* batch_mean, float* batch_var, float* y) {
  const auto& [rows, columns, epsilon] = options;
  std::vector<Operand> operands = {In(weights.gamma, columns), In(weights.beta, columns),
                                   In(x, rows * columns),      Out(saved, 2 * columns),
                                   Out(batch_mean, columns),   Out(batch_var, columns),
                                   Out(y, rows * columns)};
  // Only a batch of one row needs the running statistics.
  if (rows == 1) {
    operands.push_back(In(weights.running_mean, columns));
    operands.push_back(In(weights.running_var, columns));
  }
  Run("BatchNormForward", operands, [=, this](const Places& places) {
    wrapped_->BatchNormForward(options, WeightsAt(places, weights), places.Of(x), places.Of(saved),
                               places.Of(batch_mean), places.Of(batch_var), places.Of(y));
  });
}

void WrappedBackend::BatchNormInference(const BatchNormOptions& options,
                                        const BatchNormWeights& weights, const float* x, float* y) {
  const auto& [rows, columns, epsilon] = options;
  const std::vector<Operand> operands = {In(weights.gamma, columns),
                                         In(weights.beta, columns),
                                         In(weights.running_mean, columns),
                                         In(weights.running_var, columns),
                                         In(x, rows * columns),
                                         Out(y, rows * columns)};
  Run("BatchNormInference", operands, [=, this](const Places& places) {
    wrapped_->BatchNormInference(options, WeightsAt(places, weights), places.Of(x), places.Of(y));
  });
}

}  // namespace leeway::testing
