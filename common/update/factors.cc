#include "common/update/factors.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/element_name.h"

namespace leeway {
namespace {

UpdatePart PartOf(const v1::Factors& factors) {
  // A factor that is not given is 1.
  return {.rate = factors.learning_rate(), .decay = factors.weight_decay()};
}

UpdatePart PartOf(v1::TensorKind kind, const v1::TensorFactors& factors) {
  switch (kind) {
    case v1::TENSOR_KIND_BIAS:
      return PartOf(factors.biases());
    case v1::TENSOR_KIND_NORM:
      return PartOf(factors.norms());
    case v1::TENSOR_KIND_EMBEDDING:
      return PartOf(factors.embeddings());
    default:
      // Weights, and kinds that this build does not know, have the factor 1.
      return {};
  }
}

UpdatePart PartOf(const v1::TensorSpec& tensor, const v1::TensorFactors& factors) {
  UpdatePart part = PartOf(tensor.kind(), factors);
  const UpdatePart own = PartOf(tensor.factors());
  part.rate *= own.rate;
  part.decay *= own.decay;
  return part;
}

void AppendPart(std::vector<UpdatePart>& parts, UpdatePart part, size_t end) {
  const size_t begin = parts.empty() ? 0 : parts.back().end;
  if (end <= begin) return;
  part.end = end;
  const auto alike = [&part](const UpdatePart& before) {
    return before.rate == part.rate && before.decay == part.decay && before.skip == part.skip;
  };
  if (!parts.empty() && alike(parts.back())) {
    parts.back().end = end;
  } else {
    parts.push_back(part);
  }
}

}  // namespace

std::vector<UpdatePart> UpdatePartsOf(const v1::ModelSchema& schema, const v1::Update& update) {
  const bool by_tensor =
      std::any_of(schema.tensors().begin(), schema.tensors().end(),
                  [](const v1::TensorSpec& tensor) { return tensor.has_factors(); });
  if (!update.has_factors() && !by_tensor) return {};
  std::vector<UpdatePart> parts;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    if (tensor.offset() >= schema.trained()) break;
    const uint64_t end = std::min(tensor.offset() + ElementsOf(tensor), schema.trained());
    AppendPart(parts, PartOf(tensor, update.factors()), end);
  }
  // A vector need not consist of tensors; for example, a benchmark's does not.
  AppendPart(parts, {}, schema.trained());
  const bool plain = parts.size() == 1 && parts[0].rate == 1 && parts[0].decay == 1;
  return plain ? std::vector<UpdatePart>() : parts;
}

std::vector<UpdatePart> PartsWithin(const std::vector<UpdatePart>& all, const ElementRange& range) {
  std::vector<UpdatePart> within;
  auto part =
      std::upper_bound(all.begin(), all.end(), range.offset,
                       [](uint64_t offset, const UpdatePart& each) { return offset < each.end; });
  for (; part != all.end(); ++part) {
    within.push_back(*part);
    within.back().end = std::min<size_t>(part->end, range.end()) - range.offset;
    if (part->end >= range.end()) break;
  }
  return within;
}

std::vector<UpdatePart> Multiplied(std::vector<UpdatePart> parts,
                                   std::span<const UpdatePart> others) {
  if (others.empty()) return parts;
  if (parts.empty()) return {others.begin(), others.end()};
  std::vector<UpdatePart> product;
  for (auto one = parts.begin(), end = parts.end(); one != end && !others.empty();) {
    const UpdatePart& other = others.front();
    const size_t at = std::min(one->end, other.end);
    AppendPart(product,
               {.rate = one->rate * other.rate,
                .decay = one->decay * other.decay,
                .skip = one->skip || other.skip},
               at);
    if (other.end == at) others = others.subspan(1);
    if (one->end == at) ++one;
  }
  return product;
}

absl::Status CheckRates(std::span<const UpdatePart> parts, uint64_t trained) {
  if (parts.empty()) return absl::OkStatus();
  uint64_t before = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t end = parts[i].end;
    const double factor = parts[i].rate;
    if (end <= before || end > trained) {
      return absl::InvalidArgumentError(absl::StrCat(
          "rates[", i, "].end: is ", end, "; it must be above ", before,
          ", the previous end, and at most ", trained, ", the number of trained elements"));
    }
    if (!std::isfinite(factor) || factor < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("rates[", i, "].factor: is ", factor, "; it must be finite and at least 0"));
    }
    before = end;
  }
  if (before == trained) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rates[", parts.size() - 1, "].end: is ", before,
                                                 "; the last end must be ", trained,
                                                 ", the number of trained elements"));
}

bool SkipsAll(std::span<const UpdatePart> parts) {
  return !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), [](const UpdatePart& part) { return part.skip; });
}

}  // namespace leeway
