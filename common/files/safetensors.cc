#include "common/files/safetensors.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"
#include "nlohmann/json.hpp"

namespace leeway {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kAlign = 8;
constexpr char kMetadata[] = "__metadata__";

// Returns the number of elements of a tensor. If the product overflows, returns a number that is
// larger than any file.
uint64_t ElementsOf(const v1::TensorSpec& tensor) {
  uint64_t elements = 1;
  for (uint64_t size : tensor.shape()) {
    if (__builtin_mul_overflow(elements, size, &elements)) return UINT64_MAX;
  }
  return elements;
}

absl::StatusOr<std::string> HeaderOf(const v1::ModelSchema& schema,
                                     const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header;
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t end = 0;
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    const uint64_t elements = ElementsOf(tensor);
    if (tensor.offset() != end || elements > schema.total() - end) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", tensor.name(), "' has ", elements, " elements from element ",
                       tensor.offset(), ", but the previous tensor ends at element ", end,
                       ", and the model has ", schema.total(), " elements"));
    }
    if (tensor.name() == kMetadata || header.contains(tensor.name())) {
      return absl::InvalidArgumentError(
          absl::StrCat("the tensor name '", tensor.name(), "' is reserved or already used"));
    }
    header[tensor.name()] = {
        {"dtype", "F32"},
        {"shape", std::vector<uint64_t>(tensor.shape().begin(), tensor.shape().end())},
        {"data_offsets", {end * sizeof(float), (end + elements) * sizeof(float)}}};
    end += elements;
  }
  if (end != schema.total()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors have ", end, " elements, but the model has ", schema.total()));
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlign - 1) / kAlign * kAlign, ' ');
  return text;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, const v1::ModelSchema& schema,
                              std::span<const float> weights,
                              const std::map<std::string, std::string>& metadata, WriteTo to) {
  const std::string context = absl::StrCat("writing safetensors '", path, "'");
  if (weights.size() != schema.total()) {
    return absl::InvalidArgumentError(absl::StrCat(
        context, ": ", weights.size(), " weights, but the schema has ", schema.total()));
  }
  absl::StatusOr<std::string> header;
  try {
    header = HeaderOf(schema, metadata);
  } catch (const nlohmann::json::exception& error) {  // A name is not UTF-8.
    header = absl::InvalidArgumentError(error.what());
  }
  if (!header.ok()) return Annotate(header.status(), context);
  const uint64_t length = header->size();
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path, to));
  RETURN_IF_ERROR(writer.Append(BytesOf(std::span<const uint64_t>(&length, 1))));
  RETURN_IF_ERROR(writer.Append(*header));
  RETURN_IF_ERROR(writer.Append(BytesOf(weights)));
  return writer.Finish();
}

}  // namespace leeway
