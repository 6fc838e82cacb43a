// Reads the lines of a text file of any size one after the other, in bounded memory.
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
    // The line without its line end, or only its beginning if the line is too long. Valid until the
    // next call.
    std::string_view text;
    // The number of the line in the file, from 1.
    uint64_t number = 0;
    // Whether the line has more bytes than the reader's limit.
    bool too_long = false;
    // Whether the line has a line end. Only the last line of a file may have none.
    bool complete = false;
  };

  // Opens the file. The reader stops at the file's size at this moment and ignores lines that are
  // appended later. The errors are those of FileReader.
  static absl::StatusOr<LineReader> Open(const std::string& path, size_t line_bytes_max);

  // Returns the next line, or nothing at the end of the file. Do not call this function again after
  // an error.
  absl::StatusOr<std::optional<Line>> Next();

 private:
  LineReader(FileReader file, size_t line_bytes_max);
  // Appends the next bytes of the file to the buffer. Returns false at the end of the file.
  absl::StatusOr<bool> Fill();

  FileReader file_;
  const size_t line_bytes_max_;
  uint64_t position_ = 0;
  std::string buffer_;
  // The number of bytes in the buffer that belong to lines already returned.
  size_t taken_ = 0;
  uint64_t number_ = 0;
  // The beginning of a line that is too long.
  std::string beginning_;
};

}  // namespace leeway
