#include "common/element_name.h"

#include "absl/strings/str_cat.h"

namespace leeway {

uint64_t ElementsOf(const v1::TensorSpec& tensor) {
  uint64_t elements = 1;
  for (const uint64_t side : tensor.shape()) elements *= side;
  return elements;
}

std::string ElementName(const v1::ModelSchema& schema, uint64_t element) {
  const v1::TensorSpec* found = nullptr;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const bool nearer = found == nullptr || tensor.offset() > found->offset();
    if (tensor.offset() <= element && nearer) found = &tensor;
  }
  if (found == nullptr) return absl::StrCat("element ", element);
  return absl::StrCat(found->name(), "[", element - found->offset(), "]");
}

}  // namespace leeway
