// Lines and numbers of text data.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace leeway {

// Walks the lines of a text, which may end in \n or \r\n and start with a byte-order mark.
class Lines {
 public:
  explicit Lines(absl::string_view text);
  // False at the end.
  bool Next(absl::string_view& line);
  // Of the last line read, from 1.
  size_t number() const { return number_; }

 private:
  absl::string_view rest_;
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
