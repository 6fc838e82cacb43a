// Reads safetensors files (common/files/safetensors.h has the format), of any program. Strict,
// because such files come from anywhere: what the header says is checked against the file before
// any value is read.
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
  // As the header says it: F32, BF16, I64.
  std::string dtype;
  std::vector<uint64_t> shape;
  // Of the file, in bytes.
  uint64_t begin = 0;
  uint64_t end = 0;

  // Open has checked that it is no more than the file holds.
  uint64_t elements() const;
};

// "[64, 3, 7, 7]"
std::string ShapeText(std::span<const uint64_t> shape);

// Thread-safe.
class SafetensorsReader {
 public:
  // As in the reference implementation.
  static constexpr uint64_t kHeaderBytesMax = 100'000'000;
  static constexpr size_t kDimensionsMax = 16;

  // Reads the header. NOT_FOUND if there is no file; DATA_LOSS, naming file and tensor, unless the
  // header is as the format has it: no name twice, dtypes that are known, offsets that fit the
  // shapes and lie in the file one behind the other, without gaps.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // In the order of their data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Null if there is none.
  const StoredTensor* Find(absl::string_view name) const;

  // The values, row-major, into `out` of tensor.elements() floats. INVALID_ARGUMENT if the dtype is
  // none of F32, F16, BF16 and F64, or a value is not finite as a float32; DATA_LOSS if the file
  // has become shorter.
  absl::Status Read(const StoredTensor& tensor, std::span<float> out) const;

 private:
  SafetensorsReader(FileReader file, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  FileReader file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace leeway
