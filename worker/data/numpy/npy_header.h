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
  // 'b' bool, 'u' and 'i' whole numbers, 'f' floats.
  char kind = 'f';
  // Of an element: 1, 2, 4 or 8.
  uint32_t bytes = 0;
  bool big_endian = false;
  std::vector<uint64_t> shape;
  // Of the header in the file.
  uint64_t size = 0;
};

// Reads the header, and leaves `file` behind it. Elements are in C order. INVALID_ARGUMENT with the
// file for anything else, and for objects, which are pickles and can run code: they are never read.
absl::StatusOr<NpyHeader> ReadNpyHeader(DataFile& file);

// The dictionary of a header, such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4),
// }". Errors have no place.
absl::StatusOr<NpyHeader> ParseNpyDictionary(std::string_view text);

}  // namespace leeway
