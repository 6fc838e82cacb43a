// Safetensors files of other programs. The header's length is written here, unless the first byte
// says otherwise, so that the bytes behind it are reached.
#include <cmath>
#include <fstream>
#include <vector>

#include "common/files/safetensors_reader.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/temp_folder.h"

namespace leeway::safetensors {
namespace {

std::string FileOf(FuzzInput input) {
  if (input.Flag()) return TextOf(input.Rest());
  const std::string header = TextOf(input.Take(input.Short()));
  const uint64_t length = header.size();
  std::string file(sizeof(length), '\0');
  std::memcpy(file.data(), &length, sizeof(length));
  return file + header + TextOf(input.Rest());
}

void PromiseValues(const SafetensorsReader& file, const StoredTensor& tensor) {
  std::vector<float> values(tensor.elements());
  const absl::Status read = file.Read(tensor, values);
  Promise(read.ok() || absl::IsInvalidArgument(read), "values are read, or no weights");
  for (const float value : values) {
    if (read.ok()) Promise(std::isfinite(value), "what was read is finite");
  }
}

void Read(FuzzInput input) {
  static const TempFolder folder;
  const std::string path = folder / "m.safetensors";
  const std::string text = FileOf(input);
  std::ofstream(path, std::ios::binary) << text;
  const auto file = SafetensorsReader::Open(path);
  Promise(file.ok() || absl::IsDataLoss(file.status()), "a file that cannot be read is DATA_LOSS");
  if (!file.ok()) return;
  uint64_t end = file->tensors().empty() ? text.size() : file->tensors().front().begin;
  for (const StoredTensor& tensor : file->tensors()) {
    Promise(tensor.begin == end && tensor.end >= end, "tensors lie one behind the other");
    Promise(tensor.elements() <= tensor.end - tensor.begin, "an element has bytes");
    Promise(file->Find(tensor.name) == &tensor, "a name is there once");
    end = tensor.end;
    PromiseValues(*file, tensor);
  }
  Promise(end == text.size(), "every byte belongs to a tensor");
}

}  // namespace
FUZZ_TARGET(safetensors) { Read(input); }

}  // namespace leeway::safetensors
