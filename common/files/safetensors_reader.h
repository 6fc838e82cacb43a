// Reads safetensors files that any program has written (common/files/safetensors.h has the format).
// The files may come from strangers, so the reader is strict. It checks the header against the file
// before it reads values.
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
  // The type in the header, such as F32, BF16 or I64.
  std::string dtype;
  std::vector<uint64_t> shape;
  // The values are the bytes [begin, end) of the file.
  uint64_t begin = 0;
  uint64_t end = 0;

  // Returns the number of elements. Open has checked that the file has all of them.
  uint64_t elements() const;
};

// Returns a string such as "[64, 3, 7, 7]".
std::string ShapeText(std::span<const uint64_t> shape);

// Thread-safe.
class SafetensorsReader {
 public:
  // The limits of the reference implementation.
  static constexpr uint64_t kHeaderBytesMax = 100'000'000;
  static constexpr size_t kDimensionsMax = 16;

  // Reads the header. Returns NOT_FOUND if the file does not exist. Returns DATA_LOSS, naming file
  // and tensor, unless the header conforms to the format: unique names, known dtypes, and offsets
  // that match the shapes and cover the file in order without gaps.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // The tensors in the order of their data.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Returns the tensor with this name, or null if the file does not have it.
  const StoredTensor* Find(absl::string_view name) const;

  // Reads the values, row-major, into `out`, which has tensor.elements() floats. Returns
  // INVALID_ARGUMENT if the dtype is not F32, F16, BF16 or F64, or a value is not finite as a
  // float32. Returns DATA_LOSS if the file has become shorter.
  absl::Status Read(const StoredTensor& tensor, std::span<float> out) const;

 private:
  SafetensorsReader(FileReader file, std::vector<StoredTensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  FileReader file_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace leeway
