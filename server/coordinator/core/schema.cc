#include "server/coordinator/core/schema.h"

#include <algorithm>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "config/rules.h"
#include "config/scalar.h"

namespace leeway {
namespace {

// Returns the number of elements of a tensor. If the number is above kModelElementsMax, returns
// some number above kModelElementsMax.
uint64_t Elements(const v1::TensorSpec& tensor) {
  uint64_t elements = 1;
  for (const uint64_t side : tensor.shape()) {
    if (side == 0) return 0;
    if (elements > kModelElementsMax / side) return kModelElementsMax + 1;
    elements *= side;
  }
  return elements;
}

std::string Describe(const v1::ModelSchema& schema, int index) {
  if (index >= schema.tensors_size()) return "no tensor";
  const v1::TensorSpec& tensor = schema.tensors(index);
  return absl::StrCat(tensor.name(), " [", absl::StrJoin(tensor.shape(), ", "), "] at element ",
                      tensor.offset());
}

bool Same(const v1::ModelSchema& a, const v1::ModelSchema& b, int index) {
  if (index >= a.tensors_size() || index >= b.tensors_size()) return false;
  const v1::TensorSpec& x = a.tensors(index);
  const v1::TensorSpec& y = b.tensors(index);
  return x.name() == y.name() && x.offset() == y.offset() &&
         std::equal(x.shape().begin(), x.shape().end(), y.shape().begin(), y.shape().end());
}

}  // namespace

absl::Status ValidateSchema(const v1::ModelSchema& schema) {
  uint64_t end = 0;
  bool trained_seen = schema.trained() == 0;
  std::unordered_set<std::string> names;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const std::string where = absl::StrCat("the model's schema: tensor '", tensor.name(), "'");
    if (tensor.name().empty()) return absl::InvalidArgumentError(where + " has no name");
    if (!names.insert(tensor.name()).second) {
      return absl::InvalidArgumentError(where + " is named twice");
    }
    if (tensor.offset() != end) {
      return absl::InvalidArgumentError(absl::StrCat(where, " begins at element ", tensor.offset(),
                                                     ", but the tensor before it ends at ", end));
    }
    const uint64_t elements = Elements(tensor);
    if (elements == 0) return absl::InvalidArgumentError(where + " has no elements");
    end += elements;
    if (elements > kModelElementsMax || end > kModelElementsMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " makes the model larger than ", kModelElementsMax, " elements"));
    }
    if (tensor.has_momentum() && !(tensor.momentum() > 0 && tensor.momentum() <= 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " has a momentum of ", tensor.momentum(), "; it must be in (0, 1]"));
    }
    std::vector<Fault> faults;
    if (tensor.has_factors()) CheckRules(tensor.factors(), "factors", faults);
    if (!faults.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": ", faults.front().path, ": ", faults.front().message));
    }
    if (!v1::TensorKind_IsValid(tensor.kind())) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " has the kind ", tensor.kind(), ", which this build does not know"));
    }
    trained_seen |= end == schema.trained();
  }
  if (end == 0) return absl::InvalidArgumentError("the model's schema has no tensors");
  if (end != schema.total()) {
    return absl::InvalidArgumentError(absl::StrCat("the model's schema: total is ", schema.total(),
                                                   ", but its tensors have ", end, " elements"));
  }
  if (!trained_seen) {
    return absl::InvalidArgumentError(absl::StrCat("the model's schema: trained is ",
                                                   schema.trained(), ", but no tensor ends there"));
  }
  return absl::OkStatus();
}

absl::Status CompareSchemas(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual) {
  const int tensors = std::max(expected.tensors_size(), actual.tensors_size());
  for (int i = 0; i < tensors; ++i) {
    if (Same(expected, actual, i)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "the models differ: tensor ", i, " of ", actual_owner, " is ", Describe(actual, i),
        ", but that of ", expected_owner, " is ", Describe(expected, i),
        "; give every worker the same job file and the same data shape"));
  }
  if (expected.trained() != actual.trained()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the models differ: ", actual_owner, " trains ", actual.trained(),
                     " elements, but ", expected_owner, " trains ", expected.trained()));
  }
  return absl::OkStatus();
}

absl::Status CompareFactors(const std::string& expected_owner, const v1::ModelSchema& expected,
                            const std::string& actual_owner, const v1::ModelSchema& actual) {
  const auto text = [](const v1::Factors& factors) {
    return absl::StrCat("{learning_rate: ", FormatNumber(factors.learning_rate()),
                        ", weight_decay: ", FormatNumber(factors.weight_decay()), "}");
  };
  for (int i = 0; i < std::min(expected.tensors_size(), actual.tensors_size()); ++i) {
    const v1::Factors& a = expected.tensors(i).factors();
    const v1::Factors& b = actual.tensors(i).factors();
    if (expected.tensors(i).begins_block() != actual.tensors(i).begins_block()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the optimizers differ: only one of ", actual_owner, " and ", expected_owner,
                       " says that a block begins with tensor '", actual.tensors(i).name(),
                       "'; start every worker with the same program and options"));
    }
    if (a.learning_rate() == b.learning_rate() && a.weight_decay() == b.weight_decay()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the optimizers differ: the factors of tensor '", actual.tensors(i).name(),
                     "' are ", text(b), " in ", actual_owner, ", but ", text(a), " in ",
                     expected_owner, "; start every worker with the same program and options"));
  }
  return absl::OkStatus();
}

void TakeTraits(const v1::ModelSchema& from, v1::ModelSchema& to) {
  for (int i = 0; i < std::min(from.tensors_size(), to.tensors_size()); ++i) {
    // A worker of an older version, which knows no kinds, reports every tensor as a weight. So this
    // kind does not replace another.
    if (from.tensors(i).kind() != v1::TENSOR_KIND_WEIGHT) {
      to.mutable_tensors(i)->set_kind(from.tensors(i).kind());
    }
    to.mutable_tensors(i)->set_begins_block(from.tensors(i).begins_block());
    to.mutable_tensors(i)->clear_factors();
    if (from.tensors(i).has_factors()) {
      *to.mutable_tensors(i)->mutable_factors() = from.tensors(i).factors();
    }
    if (from.tensors(i).has_momentum()) {
      to.mutable_tensors(i)->set_momentum(from.tensors(i).momentum());
    }
  }
}

}  // namespace leeway
