// Kernels on whole vectors of a model: the arithmetic of exchanges, and local optimizers.
#include <span>

#include "absl/status/status.h"
#include "common/update/formula.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/elementwise.h"
#include "worker/device/cuda/kernels/update.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {
namespace {

// Returns the kernel's body for the elements from `begin` on.
UpdateTrained TrainedFrom(size_t begin, const VectorUpdate& update, const UpdateStep& step,
                          float* finite) {
  UpdateTrained body{.formula = update.rule->formula(step),
                     .slot_count = update.slots.size(),
                     .gradient = update.contribution + begin,
                     .weights = update.weights + begin,
                     .slots = {},
                     .finite = finite};
  for (size_t i = 0; i < body.slot_count; ++i) body.slots[i] = update.slots[i] + begin;
  return body;
}

}  // namespace

void CudaBackend::AddDifference(size_t count, float scale, const float* a, const float* b,
                                const float* base, float* out) {
  Launch(queue_, "AddDifference", count, Difference{scale, a, b, base, out});
}

void CudaBackend::Update(const VectorUpdate& update, float* finite) {
  UpdateStep step = update.step;
  update.rule->Prepare(step);
  const bool has_formula = update.rule->formula(step).kind != UpdateFormula::Kind::kNone;
  if (!has_formula || update.slots.size() > UpdateTrained::kMaxSlots) {
    return queue_.Fail(absl::UnimplementedError(
        "this local optimizer cannot run on a GPU: set workers.device: cpu"));
  }
  Fill(1, 1.0f, finite);
  const UpdatePart whole = {.end = update.trained};
  const auto parts = update.parts.empty() ? std::span(&whole, 1) : std::span(update.parts);
  size_t begin = 0;
  for (const UpdatePart& part : parts) {
    Launch(queue_, "Update", part.end - begin, TrainedFrom(begin, update, step.In(part), finite));
    begin = part.end;
  }
  for (const VectorUpdate::Average& average : update.averages) {
    Launch(
        queue_, "Update", average.end - begin,
        UpdateAveraged{average.share, update.contribution + begin, update.weights + begin, finite});
    begin = average.end;
  }
}

void CudaBackend::Scale(size_t count, float factor, float* x, float* finite) {
  Launch(queue_, "Scale", count, ScaleAndCheck{factor, x, finite});
}

}  // namespace leeway::cuda
