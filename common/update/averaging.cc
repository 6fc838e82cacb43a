#include "common/update/averaging.h"

#include <algorithm>
#include <cmath>

#include "common/element_name.h"

namespace leeway {
namespace {

// PyTorch's default, used where a schema specifies no momentum.
constexpr double kMomentum = 0.1;

void AppendAveraged(std::vector<AveragedElements>& all, uint64_t end, double momentum) {
  AveragedElements& last = all.back();
  if (end <= last.range.end()) return;
  if (last.range.count == 0 || last.momentum == momentum) {
    last = {{last.range.offset, end - last.range.offset}, momentum};
  } else {
    all.push_back({{last.range.end(), end - last.range.end()}, momentum});
  }
}

}  // namespace

std::vector<AveragedElements> AveragedElementsOf(const v1::ModelSchema& schema) {
  if (schema.trained() >= schema.total()) return {};
  std::vector<AveragedElements> all = {{{schema.trained(), 0}, kMomentum}};
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const uint64_t end = std::min(tensor.offset() + ElementsOf(tensor), schema.total());
    const double momentum = tensor.has_momentum() ? tensor.momentum() : kMomentum;
    if (tensor.offset() >= schema.trained()) AppendAveraged(all, end, momentum);
  }
  // A vector need not consist of tensors; for example, a benchmark's does not.
  AppendAveraged(all, schema.total(), kMomentum);
  return all;
}

std::vector<AveragedElements> Within(const std::vector<AveragedElements>& all,
                                     const ElementRange& range) {
  std::vector<AveragedElements> within;
  for (const AveragedElements& elements : all) {
    const uint64_t begin = std::max(elements.range.offset, range.offset);
    const uint64_t end = std::min(elements.range.end(), range.end());
    if (begin < end) within.push_back({{begin, end - begin}, elements.momentum});
  }
  return within;
}

double MovedShare(double momentum, double batches) {
  if (!(momentum > 0 && batches > 0)) return 0;
  if (momentum >= 1) return 1;
  return batches == 1 ? momentum : -std::expm1(batches * std::log1p(-momentum));
}

double JoiningShare(double momentum, double before) {
  if (!(before > 0)) return 1;
  return std::isinf(before) ? momentum : MovedShare(momentum, 1) / MovedShare(momentum, before + 1);
}

}  // namespace leeway
