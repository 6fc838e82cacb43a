// The partial results of CudaBackend's sums in two passes.
#pragma once

#include <cstddef>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/columns.h"
#include "worker/device/cuda/launch.h"

namespace leeway::cuda {

// The number of bytes for a backend's partial results.
inline constexpr size_t kPartialsBytes = size_t{4} << 20;

template <typename Term, typename Sink>
void CudaBackend::SumColumns(const char* what, size_t rows, size_t columns, const Term& term,
                             const Sink& sink) {
  const ColumnCut cut = ColumnCut::Of(rows, columns, kPartialsBytes / sizeof(double));
  if (cut.chunks == 1) {
    Launch(queue_, what, columns, ColumnSums<Term, Sink>{cut, term, sink});
    return;
  }
  auto* const partials = static_cast<double*>(partials_);
  Launch(queue_, what, cut.chunks * columns, ColumnPartials<Term>{cut, term, partials});
  Launch(queue_, what, columns, ColumnTotals<Sink>{cut, partials, sink});
}

}  // namespace leeway::cuda
