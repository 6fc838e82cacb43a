// Encodings of contributions.
#include <algorithm>

#include "worker/device/cuda/cuda_backend.h"
#include "worker/device/cuda/kernels/encode.h"
#include "worker/device/cuda/launch.h"
#include "worker/device/cuda/sums.h"

namespace leeway::cuda {
namespace {

EncodeInput From(const EncodeInput& input, size_t first, size_t count) {
  return {count, input.values + first, input.residual + first};
}

}  // namespace

template <typename Groups, typename Values>
void CudaBackend::EncodeScaled(const EncodeInput& whole, size_t threads_a_group, uint8_t* encoded) {
  using Partial = typename Groups::Partial;
  constexpr size_t kGroupsAtOnce = kPartialsBytes / sizeof(Partial) / kGroupLanes;
  auto* const partials = static_cast<Partial*>(partials_);
  for (size_t first = 0; first < whole.count; first += kGroupsAtOnce * kGroupValues) {
    const EncodeInput input =
        From(whole, first, std::min(kGroupsAtOnce * kGroupValues, whole.count - first));
    const size_t groups = (input.count + kGroupValues - 1) / kGroupValues;
    Launch(queue_, "Encode", groups * kGroupLanes, EncodePartials<Groups>{input, partials});
    Launch(queue_, "Encode", groups, EncodeScales<Groups>{input, partials, encoded});
    Launch(queue_, "Encode", groups * threads_a_group, Values{input, encoded});
    encoded += groups * Groups::kBytes;
  }
}

void CudaBackend::Encode(GroupFormat format, size_t count, const float* values, float* residual,
                         float* encoded) {
  const EncodeInput input{count, values, residual};
  auto* const words = reinterpret_cast<uint32_t*>(encoded);
  auto* const bytes = reinterpret_cast<uint8_t*>(encoded);
  switch (format) {
    case GroupFormat::kBf16:
      return Launch(queue_, "Encode", (count + 1) / 2, EncodeHalves<Bf16Halves>{input, words});
    case GroupFormat::kFp16:
      return Launch(queue_, "Encode", (count + 1) / 2, EncodeHalves<Fp16Halves>{input, words});
    case GroupFormat::kInt8:
      return EncodeScaled<Int8Groups, EncodeInt8>(input, EncodeInt8::kEach, bytes);
    case GroupFormat::kSign:
      return EncodeScaled<SignGroups, EncodeSign>(input, kGroupLanes, bytes);
  }
}

}  // namespace leeway::cuda
