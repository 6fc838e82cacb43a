#include "worker/model/initializer.h"

#include <algorithm>
#include <cmath>

#include "common/philox.h"

namespace leeway {
namespace {

void FillNormal(double variance, RandomStream& stream, std::span<float> values) {
  const double deviation = std::sqrt(variance);
  for (float& value : values) value = static_cast<float>(deviation * stream.Normal());
}

void FillUniform(double bound, RandomStream& stream, std::span<float> values) {
  for (float& value : values) value = static_cast<float>(bound * (2.0 * stream.Uniform() - 1.0));
}

}  // namespace

void InitializeTensor(const TensorPlan& plan, uint64_t seed, uint64_t index,
                      std::span<float> values) {
  RandomStream stream(seed, RandomPurpose::kInitialize, {index});
  const double fan_in = static_cast<double>(std::max<uint64_t>(plan.fan_in, 1));
  const double fan_out = static_cast<double>(plan.fan_out);
  std::fill(values.begin(), values.end(), plan.constant);
  if (!plan.initializer.has_value()) return;
  switch (*plan.initializer) {
    case v1::INITIALIZER_HE_NORMAL:
      return FillNormal(2.0 / fan_in, stream, values);
    case v1::INITIALIZER_GLOROT_UNIFORM:
      return FillUniform(std::sqrt(6.0 / (fan_in + fan_out)), stream, values);
    case v1::INITIALIZER_LECUN_NORMAL:
      return FillNormal(1.0 / fan_in, stream, values);
    case v1::INITIALIZER_NORMAL:
      return FillNormal(plan.deviation * plan.deviation, stream, values);
    case v1::INITIALIZER_ZEROS:
      return;
  }
}

}  // namespace leeway
