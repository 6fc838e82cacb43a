// Reads safetensors files (common/files/safetensors.h has the format) from any program. The reader
// is strict, because such files come from anywhere: it checks the header against the file before it
// reads values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/files/files.h"

namespace leeway {

struct StoredTensor {
  std::string name;
  // The header's name for the type: F32, BF16, I64.
  std::string dtype;
  std::vector<uint64_t> shape;
  // The position in the file, in bytes.
  uint64_t begin = 0;
  uint64_t end = 0;

  // Open has checked that the file has this number of elements.
  uint64_t elements() const;
};

// Returns a text such as "[64, 3, 7, 7]".
std::string ShapeText(std::span<const uint64_t> shape);

// Thread-safe.
class SafetensorsReader {
 public:
  // The limits of the reference implementation.
  static constexpr uint64_t kHeaderBytesMax = 100'000'000;
  static constexpr size_t kDimensionsMax = 16;

  // Reads the header. NOT_FOUND if the file does not exist. DATA_LOSS, naming file and tensor,
  // unless the header conforms to the format: unique names, known dtypes, and offsets that match
  // the shapes and cover the file in order without gaps.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // The tensors in the order of their data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Returns null if the file does not have the tensor.
  const StoredTensor* Find(absl::string_view name) const;

  // Reads the values, row-major, into `out`, which has tensor.elements() floats. INVALID_ARGUMENT
  // if the dtype is not F32, F16, BF16 or F64, or a value is not finite as a float32. DATA_LOSS if
  // the file has become shorter.
  absl::Status Read(const StoredTensor& tensor, std::span<float> out) const;

 private:
  SafetensorsReader(FileReader file, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  FileReader file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace leeway
