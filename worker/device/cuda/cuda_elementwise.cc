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

void CudaBackend::ReluForward(size_t count, const float* x, float* y) {
  Launch(queue_, "ReluForward", count, Map1<Relu>{{}, x, y});
}

void CudaBackend::ReluBackward(size_t count, const float* y, const float* dy, float* dx) {
  Launch(queue_, "ReluBackward", count, Map2<ReluSlope>{{}, y, dy, dx});
}

void CudaBackend::GeluForward(size_t count, const float* x, float* y) {
  Launch(queue_, "GeluForward", count, Map1<Gelu>{{}, x, y});
}

void CudaBackend::GeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Launch(queue_, "GeluBackward", count, Map2<GeluSlope>{{}, x, dy, dx});
}

void CudaBackend::TanhGeluForward(size_t count, const float* x, float* y) {
  Launch(queue_, "TanhGeluForward", count, Map1<TanhGelu>{{}, x, y});
}

void CudaBackend::TanhGeluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Launch(queue_, "TanhGeluBackward", count, Map2<TanhGeluSlope>{{}, x, dy, dx});
}

void CudaBackend::TanhForward(size_t count, const float* x, float* y) {
  Launch(queue_, "TanhForward", count, Map1<Tanh>{{}, x, y});
}

void CudaBackend::TanhBackward(size_t count, const float* y, const float* dy, float* dx) {
  Launch(queue_, "TanhBackward", count, Map2<TanhSlope>{{}, y, dy, dx});
}

void CudaBackend::Relu6Forward(size_t count, const float* x, float* y) {
  Launch(queue_, "Relu6Forward", count, Map1<Relu6>{{}, x, y});
}

void CudaBackend::Relu6Backward(size_t count, const float* y, const float* dy, float* dx) {
  Launch(queue_, "Relu6Backward", count, Map2<Relu6Slope>{{}, y, dy, dx});
}

void CudaBackend::SiluForward(size_t count, const float* x, float* y) {
  Launch(queue_, "SiluForward", count, Map1<Silu>{{}, x, y});
}

void CudaBackend::SiluBackward(size_t count, const float* x, const float* dy, float* dx) {
  Launch(queue_, "SiluBackward", count, Map2<SiluSlope>{{}, x, dy, dx});
}

void CudaBackend::DropoutForward(size_t count, float rate, const DropoutKey& key, const float* x,
                                 float* mask, float* y) {
  const auto threshold = static_cast<uint64_t>(static_cast<double>(rate) * 0x1p32);
  const size_t blocks = (count + Dropout::kElements - 1) / Dropout::kElements;
  Launch(queue_, "DropoutForward", blocks,
         Dropout{count, threshold, 1.0f / (1.0f - rate), key.key, key.stream, x, mask, y});
}

}  // namespace leeway::cuda
