// Fills, copies, sums over rows, activations, dropout.
#include <cstdint>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/dropout.h"
#include "worker/device/cuda/kernels/elementwise.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {

void CudaBackend::Fill(size_t count, float value, float* y) {
  Launch(queue_, "Fill", count, Constant{value, y});
}

void CudaBackend::Copy(size_t count, const float* x, float* y) { queue_.CopyInside(count, x, y); }

void CudaBackend::CopyColumns(const ColumnCopy& shape, const float* x, float* y) {
  Launch(queue_, "CopyColumns", shape.rows * shape.columns,
         CopiedColumns{shape.columns, shape.from_stride, shape.to_stride, x, y});
}

void CudaBackend::Multiply(size_t count, const float* x, const float* y, float* z) {
  Launch(queue_, "Multiply", count, Map2<Product>{{}, x, y, z});
}

void CudaBackend::FillRows(size_t rows, size_t columns, const float* row, float* y) {
  Launch(queue_, "FillRows", rows * columns, RowToAll{columns, row, false, y});
}

void CudaBackend::AddRows(size_t rows, size_t columns, const float* row, float* y) {
  Launch(queue_, "AddRows", rows * columns, RowToAll{columns, row, true, y});
}

void CudaBackend::SumRows(size_t rows, size_t columns, const float* x, float* sum) {
  SumColumns("SumRows", rows, columns, MatrixTerm{columns, x}, SumSink{sum});
}

void CudaBackend::ActivationForward(Activation activation, size_t count, const float* x, float* y) {
  switch (activation) {
    case Activation::kRelu:
      return Launch(queue_, "ReluForward", count, Map1<Relu>{{}, x, y});
    case Activation::kRelu6:
      return Launch(queue_, "Relu6Forward", count, Map1<Relu6>{{}, x, y});
    case Activation::kTanh:
      return Launch(queue_, "TanhForward", count, Map1<Tanh>{{}, x, y});
    case Activation::kGelu:
      return Launch(queue_, "GeluForward", count, Map1<Gelu>{{}, x, y});
    case Activation::kTanhGelu:
      return Launch(queue_, "TanhGeluForward", count, Map1<TanhGelu>{{}, x, y});
    case Activation::kSilu:
      return Launch(queue_, "SiluForward", count, Map1<Silu>{{}, x, y});
  }
}

void CudaBackend::ActivationBackward(Activation activation, size_t count, const float* kept,
                                     const float* dy, float* dx) {
  switch (activation) {
    case Activation::kRelu:
      return Launch(queue_, "ReluBackward", count, Map2<ReluSlope>{{}, kept, dy, dx});
    case Activation::kRelu6:
      return Launch(queue_, "Relu6Backward", count, Map2<Relu6Slope>{{}, kept, dy, dx});
    case Activation::kTanh:
      return Launch(queue_, "TanhBackward", count, Map2<TanhSlope>{{}, kept, dy, dx});
    case Activation::kGelu:
      return Launch(queue_, "GeluBackward", count, Map2<GeluSlope>{{}, kept, dy, dx});
    case Activation::kTanhGelu:
      return Launch(queue_, "TanhGeluBackward", count, Map2<TanhGeluSlope>{{}, kept, dy, dx});
    case Activation::kSilu:
      return Launch(queue_, "SiluBackward", count, Map2<SiluSlope>{{}, kept, dy, dx});
  }
}

void CudaBackend::DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                                 float* mask, float* y) {
  const auto threshold = static_cast<uint64_t>(static_cast<double>(rate) * 0x1p32);
  const size_t blocks = (count + Dropout::kElements - 1) / Dropout::kElements;
  Launch(queue_, "DropoutForward", blocks,
         Dropout{count, threshold, 1.0f / (1.0f - rate), key.key, key.stream, x, mask, y});
}

}  // namespace leeway::cuda
