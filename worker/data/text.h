// Reads the lines and numbers of text data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/byte_stream.h"

namespace leeway {

// Walks the lines of a text. A line may end in
// or \r
// , and the text may begin with a byte-order mark. Only the current line, and the bytes that were
// read together with it, are in memory.
class Lines {
 public:
  // Both arguments must outlive this object.
  Lines(ByteStream& bytes, const std::string& path);
  // Reads the next line. Returns false at the end. `line` is valid until the next call. Returns
  // RESOURCE_EXHAUSTED for a line of more than kMaxLineBytes.
  absl::StatusOr<bool> Next(absl::string_view& line);
  // Returns the number of the last line that was read, counted from 1.
  size_t number() const { return number_; }

 private:
  absl::Status Fill();
  absl::string_view Take(size_t bytes, size_t with_end);

  ByteStream& bytes_;
  const std::string& path_;
  std::vector<char> buffer_;
  // The index in `buffer_` of the first byte that was not returned yet.
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
  size_t number_ = 0;
};

// Parses a finite number. Spaces around the number and a '+' before it are allowed. Otherwise
// returns INVALID_ARGUMENT. The message quotes the text, but does not say where it is.
absl::StatusOr<double> ParseNumber(absl::string_view text);
// Does the same as ParseNumber, but the number must be finite as a float.
absl::StatusOr<float> ParseFloat(absl::string_view text);
// Returns the text as errors show it: in quotes, escaped and shortened.
std::string Quote(absl::string_view text);

}  // namespace leeway
