// Whole vectors of a model: exchanges' arithmetic and local optimizers.
#include "absl/status/status.h"
#include "common/update/formula.h"
#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/elementwise.h"
#include "worker/device/cuda/kernels/update.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {

void CudaBackend::AddDifference(size_t count, float scale, const float* a, const float* b,
                                const float* base, float* out) {
  Launch(queue_, "AddDifference", count, Difference{scale, a, b, base, out});
}

void CudaBackend::Update(const VectorUpdate& update, float* finite) {
  UpdateStep step = update.step;
  update.rule->Prepare(step);
  UpdateTrained body{.formula = update.rule->formula(step),
                     .slot_count = update.slots.size(),
                     .gradient = update.contribution,
                     .weights = update.weights,
                     .slots = {nullptr, nullptr},
                     .finite = finite};
  if (body.formula.kind == UpdateFormula::Kind::kNone || body.slot_count > 2) {
    return queue_.Fail(absl::UnimplementedError(
        "this local optimizer has no formula for a GPU: use workers.device: cpu"));
  }
  for (size_t slot = 0; slot < body.slot_count; ++slot) body.slots[slot] = update.slots[slot];
  Fill(1, 1.0f, finite);
  Launch(queue_, "Update", update.trained, body);
  size_t begin = update.trained;
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
