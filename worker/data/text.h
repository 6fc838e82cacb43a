// Lines and numbers of text data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/byte_stream.h"

namespace leeway {

// Walks the lines of a text, which may end in \n or \r\n and start with a byte-order mark. Holds
// one line and what was read with it, no more.
class Lines {
 public:
  // Both outlive it.
  Lines(ByteStream& bytes, const std::string& path);
  // False at the end. `line` lasts until the next call. RESOURCE_EXHAUSTED for a line beyond
  // kMaxLineBytes.
  absl::StatusOr<bool> Next(absl::string_view& line);
  // Of the last line read, from 1.
  size_t number() const { return number_; }

 private:
  absl::Status Fill();
  absl::string_view Take(size_t bytes, size_t with_end);

  ByteStream& bytes_;
  const std::string& path_;
  std::vector<char> buffer_;
  // What is in `buffer_` and was not given out.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  size_t number_ = 0;
};

// A finite number; spaces around it and a '+' are fine. INVALID_ARGUMENT quotes the text, without a
// place.
absl::StatusOr<double> ParseNumber(absl::string_view text);
// The same, and finite as a float.
absl::StatusOr<float> ParseFloat(absl::string_view text);
// The text for an error: in quotes, escaped, not too long.
std::string Quote(absl::string_view text);

}  // namespace leeway
