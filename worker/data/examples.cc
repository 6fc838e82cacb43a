#include "worker/data/examples.h"

#include <algorithm>

#include "common/status.h"
#include "worker/data/limits.h"
#include "worker/data/text.h"

namespace leeway {

uint64_t Examples::bytes() const {
  return std::visit([](const auto& v) { return v.size() * sizeof(v[0]); }, values);
}

void Examples::Keep(const std::vector<bool>& rows) {
  const size_t elements = shape.elements();
  std::visit(
      [&](auto& v) {
        size_t kept = 0;
        for (size_t i = 0; i < rows.size(); ++i) {
          if (!rows[i]) continue;
          if (i != kept) {
            std::copy_n(v.begin() + i * elements, elements, v.begin() + kept * elements);
            labels[kept] = labels[i];
          }
          ++kept;
        }
        v.resize(kept * elements);
        v.shrink_to_fit();
        labels.resize(kept);
      },
      values);
}

absl::Status Examples::Append(Examples other, const std::string& path) {
  if (size() == 0) {
    *this = std::move(other);
    return absl::OkStatus();
  }
  if (other.shape != shape || other.values.index() != values.index()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its examples are ", DescribeShape(other.shape),
                     ", but the examples of the earlier files are ", DescribeShape(shape)));
  }
  RETURN_IF_ERROR(Annotate(CheckSameColumns(other.columns, columns), path));
  if (negative.has_value() && other.negative.value_or(*negative) != *negative) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": the labels are ", *other.negative,
                     " and 1, but the labels of the earlier files are ", *negative,
                     " and 1: with loss logistic, all files must have the same two labels"));
  }
  if (!negative.has_value()) negative = other.negative;
  const uint64_t value_bytes = std::holds_alternative<std::vector<float>>(values) ? 4 : 1;
  RETURN_IF_ERROR(CheckSize(size() + other.size(), shape.elements(), value_bytes, path));
  std::visit(
      [&](auto& v) {
        const auto& more = std::get<std::decay_t<decltype(v)>>(other.values);
        v.insert(v.end(), more.begin(), more.end());
      },
      values);
  labels.insert(labels.end(), other.labels.begin(), other.labels.end());
  return absl::OkStatus();
}

absl::StatusOr<ImageShape> MakeShape(std::span<const uint32_t> dimensions) {
  uint64_t elements = 1;
  for (uint32_t dimension : dimensions) {
    if (dimension == 0) return absl::InvalidArgumentError("shape: a dimension is 0");
    if (dimension > kMaxElements || (elements *= dimension) > kMaxElements) {
      return absl::InvalidArgumentError(
          absl::StrCat("shape: more than ", kMaxElements, " elements in an example"));
    }
  }
  switch (dimensions.size()) {
    case 1:
      return ImageShape{1, 1, dimensions[0]};
    case 2:
      return ImageShape{dimensions[0], dimensions[1], 1};
    case 3:
      return ImageShape{dimensions[0], dimensions[1], dimensions[2]};
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("shape: has ", dimensions.size(),
                       " dimensions; give [features] or [height, width, channels]"));
  }
}

absl::Status CheckSameColumns(std::span<const std::string> columns,
                              std::span<const std::string> trained) {
  if (columns.empty() || trained.empty()) return absl::OkStatus();
  if (columns.size() != trained.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "has ", columns.size(), " features, but the training data has ", trained.size()));
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i] == trained[i]) continue;
    return absl::InvalidArgumentError(absl::StrCat("its feature ", i, " is ", Quote(columns[i]),
                                                   ", but the training data has ",
                                                   Quote(trained[i])));
  }
  return absl::OkStatus();
}

std::string DescribeShape(const ImageShape& shape) {
  if (shape.flat()) return absl::StrCat(shape.channels, " features");
  return absl::StrCat(shape.height, "x", shape.width, "x", shape.channels);
}

absl::Status CheckSize(uint64_t count, uint64_t elements, uint64_t value_bytes,
                       const std::string& path) {
  if (count > kMaxExamples) {
    return absl::ResourceExhaustedError(absl::StrCat(
        path, ": has ", count, " examples, but a source may have at most ", kMaxExamples));
  }
  // The product cannot overflow, because it is at most 2^32 x 2^27 x 2^2.
  if (elements > kMaxElements || count * elements * value_bytes > kMaxDatasetBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": ", count, " examples of ", elements, " elements need more than the ",
                     kMaxDatasetBytes, " bytes of memory that a source may use"));
  }
  return absl::OkStatus();
}

}  // namespace leeway
