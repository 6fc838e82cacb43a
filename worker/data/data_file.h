// The files of the data folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// A file read whole, unpacked if its content is gzip.
struct DataFile {
  // As errors name it.
  std::string path;
  std::vector<uint8_t> bytes;

  absl::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

// `name` is relative to `data_dir` and stays below it. Errors name the full path: INVALID_ARGUMENT
// for a name that is absolute or has "..", NOT_FOUND saying what to fetch from where, DATA_LOSS for
// damaged gzip, RESOURCE_EXHAUSTED beyond kMaxFileBytes.
absl::StatusOr<DataFile> ReadDataFile(const std::string& data_dir, const std::string& name);

}  // namespace leeway
