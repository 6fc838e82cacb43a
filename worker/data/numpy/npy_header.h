// The header of NumPy's .npy format, versions 1 to 3 (numpy.lib.format).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

struct NpyHeader {
  // The kind of the elements: 'b' for bool, 'u' and 'i' for whole numbers, 'f' for floats.
  char kind = 'f';
  // The number of bytes of an element: 1, 2, 4 or 8.
  uint32_t bytes = 0;
  bool big_endian = false;
  std::vector<uint64_t> shape;
  // The number of bytes of the header in the file.
  uint64_t size = 0;
};

// Reads the header and leaves `file` at the first element. Elements are in C order. Returns
// INVALID_ARGUMENT, naming the file, for any other order or type. Python objects are never read,
// because they are pickles and can run code.
absl::StatusOr<NpyHeader> ReadNpyHeader(DataFile& file);

// Parses the dictionary of a header, such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 4), }". Errors do not name a place.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

}  // namespace leeway
