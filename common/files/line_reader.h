// The lines of a text file of any size, one after the other, in bounded memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/files/files.h"

namespace leeway {

// Not thread-safe.
class LineReader {
 public:
  struct Line {
    // Without its end. Stays until the next call. Of a line that is too long, its beginning.
    std::string_view text;
    // From 1.
    uint64_t number = 0;
    // It has more bytes than the reader takes.
    bool too_long = false;
    // It has its end of line: only a file's last one may lack it.
    bool complete = false;
  };

  // Reads what the file holds now, not what is appended meanwhile. Errors as FileReader's.
  static absl::StatusOr<LineReader> Open(const std::string& path, size_t line_bytes_max);

  // Absent at the end. After an error there is no more to be read.
  absl::StatusOr<std::optional<Line>> Next();

 private:
  LineReader(FileReader file, size_t line_bytes_max);
  // Appends what follows to the buffer; false at the end of the file.
  absl::StatusOr<bool> Fill();

  FileReader file_;
  const size_t line_bytes_max_;
  uint64_t position_ = 0;
  std::string buffer_;
  // Of the buffer: what lines given out have taken.
  size_t taken_ = 0;
  uint64_t number_ = 0;
  // Of the line that is too long.
  std::string beginning_;
};

}  // namespace leeway
