#include "library/schema.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

// The largest number of elements. It is far above any model's, and small enough that products do
// not overflow.
constexpr uint64_t kElementsMax = uint64_t{1} << 48;

absl::Status Wrong(const JobTensor& tensor, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("tensor '", Printable(tensor.name), "': ", what));
}

absl::StatusOr<uint64_t> ElementsIn(const JobTensor& tensor) {
  uint64_t elements = 1;
  for (const uint64_t side : tensor.shape) {
    if (side == 0) return Wrong(tensor, "a dimension of its shape is 0");
    if (side > kElementsMax / elements) return Wrong(tensor, "it has too many elements");
    elements *= side;
  }
  return elements;
}

bool IsFactor(double value) { return std::isfinite(value) && value >= 0; }

absl::Status CheckTensor(const JobTensor& tensor) {
  if (tensor.name.empty()) return absl::InvalidArgumentError("a tensor has no name");
  if (tensor.averaged && !(tensor.momentum > 0 && tensor.momentum <= 1)) {
    return Wrong(tensor, absl::StrCat("its momentum is ", tensor.momentum,
                                      "; it must be above 0 and at most 1"));
  }
  if (!IsFactor(tensor.learning_rate_factor) || !IsFactor(tensor.weight_decay_factor)) {
    return Wrong(tensor, "a factor is negative or not finite");
  }
  return absl::OkStatus();
}

v1::TensorSpec SpecOf(const JobTensor& tensor, uint64_t offset) {
  v1::TensorSpec spec;
  spec.set_name(tensor.name);
  spec.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
  spec.set_offset(offset);
  spec.set_kind(static_cast<v1::TensorKind>(tensor.kind));
  if (tensor.averaged) spec.set_momentum(tensor.momentum);
  spec.set_begins_block(tensor.begins_block);
  if (tensor.learning_rate_factor != 1 || tensor.weight_decay_factor != 1) {
    spec.mutable_factors()->set_learning_rate(tensor.learning_rate_factor);
    spec.mutable_factors()->set_weight_decay(tensor.weight_decay_factor);
  }
  return spec;
}

}  // namespace

absl::StatusOr<v1::ModelSchema> SchemaOf(std::span<const JobTensor> tensors) {
  v1::ModelSchema schema;
  std::set<std::string> names;
  uint64_t offset = 0;
  bool averaged = false;
  for (const JobTensor& tensor : tensors) {
    RETURN_IF_ERROR(CheckTensor(tensor));
    if (!names.insert(tensor.name).second) return Wrong(tensor, "another tensor has the same name");
    if (averaged && !tensor.averaged) {
      return Wrong(tensor,
                   "it is trained, but comes after an averaged tensor: put trained tensors first");
    }
    averaged = tensor.averaged;
    ASSIGN_OR_RETURN(const uint64_t elements, ElementsIn(tensor));
    *schema.add_tensors() = SpecOf(tensor, offset);
    if (offset > kElementsMax) return Wrong(tensor, "the model has too many elements");
    offset += elements;
    if (!averaged) schema.set_trained(offset);
  }
  schema.set_total(offset);
  return schema;
}

absl::Status CheckSame(const v1::ModelSchema& own, const v1::ModelSchema& job) {
  const int both = std::min(own.tensors_size(), job.tensors_size());
  const auto same = [](const v1::TensorSpec& a, const v1::TensorSpec& b) {
    return a.name() == b.name() &&
           std::equal(a.shape().begin(), a.shape().end(), b.shape().begin(), b.shape().end());
  };
  int i = 0;
  while (i < both && same(own.tensors(i), job.tensors(i))) ++i;
  if (i == own.tensors_size() && i == job.tensors_size()) return absl::OkStatus();
  const auto text = [i](const v1::ModelSchema& schema) {
    if (i >= schema.tensors_size()) return std::string("missing");
    const v1::TensorSpec& tensor = schema.tensors(i);
    return absl::StrCat("'", Printable(tensor.name()), "' of shape [",
                        absl::StrJoin(tensor.shape(), ", "), "]");
  };
  return absl::InvalidArgumentError(absl::StrCat("tensor ", i, " of this worker is ", text(own),
                                                 ", but the job's is ", text(job),
                                                 ": name the job's tensors, or no tensors"));
}

std::vector<JobTensor> TensorsOf(const v1::ModelSchema& schema) {
  std::vector<JobTensor> tensors;
  for (const v1::TensorSpec& spec : schema.tensors()) {
    JobTensor& tensor = tensors.emplace_back();
    tensor.name = spec.name();
    tensor.shape.assign(spec.shape().begin(), spec.shape().end());
    tensor.kind = static_cast<TensorKind>(spec.kind());
    tensor.averaged = spec.offset() >= schema.trained();
    if (spec.has_momentum()) tensor.momentum = spec.momentum();
    if (!spec.has_factors()) continue;
    tensor.learning_rate_factor = spec.factors().learning_rate();
    tensor.weight_decay_factor = spec.factors().weight_decay();
  }
  return tensors;
}

}  // namespace leeway
