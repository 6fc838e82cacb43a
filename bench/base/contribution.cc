#include "bench/base/contribution.h"

#include <algorithm>
#include <vector>

#include "common/philox.h"

namespace leeway {
namespace {

// The length after which the values repeat. It is a prime number, so that blocks differ.
constexpr size_t kPatternFloats = 65'537;

}  // namespace

void FillContribution(uint32_t rank, std::span<float> contribution) {
  RandomStream random(1, RandomPurpose::kGenerate, {rank});
  std::vector<float> pattern(std::min(kPatternFloats, contribution.size()));
  for (float& value : pattern) value = static_cast<float>(1e-3 * random.Normal());
  for (size_t i = 0; i < contribution.size(); ++i) contribution[i] = pattern[i % pattern.size()];
}

}  // namespace leeway
