// Reads the lines and numbers of text data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/byte_stream.h"

namespace leeway {

// Walks the lines of a text. A line may end in \n or \r\n, and the text may begin with a byte-order
// mark. Memory holds one line, and what was read together with it.
class Lines {
 public:
  // Both arguments must outlive this object.
  Lines(ByteStream& bytes, const std::string& path);
  // False at the end. `line` is valid until the next call. RESOURCE_EXHAUSTED for a line of more
  // than kMaxLineBytes.
  absl::StatusOr<bool> Next(absl::string_view& line);
  // The number of the last line read, from 1.
  size_t number() const { return number_; }

 private:
  absl::Status Fill();
  absl::string_view Take(size_t bytes, size_t with_end);

  ByteStream& bytes_;
  const std::string& path_;
  std::vector<char> buffer_;
  // The bytes in `buffer_` that were not returned yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  size_t number_ = 0;
};

// Parses a finite number. Spaces around it and a '+' are allowed. INVALID_ARGUMENT quotes the text,
// without a place.
absl::StatusOr<double> ParseNumber(absl::string_view text);
// The same, but the number must be finite as a float.
absl::StatusOr<float> ParseFloat(absl::string_view text);
// Returns the text as errors show it: in quotes, escaped, shortened.
std::string Quote(absl::string_view text);

}  // namespace leeway
