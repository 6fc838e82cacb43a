// A log in a storage that can only put whole files. The log is the concatenation of the segments
// FOLDER/000000.EXT, 000001.EXT and so on. The newest segment is put again with each addition until
// it is full.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/storage/storage.h"

namespace leeway {

// Not thread-safe. Call Keep at the end; otherwise the lines that were not put yet are lost.
class SegmentWriter {
 public:
  struct Options {
    // The extension of a segment's name, such as "jsonl".
    std::string extension;
    // The longest time until added lines are put, provided that Append or Tick is called then. A
    // kill loses at most the lines of this time.
    Duration every = std::chrono::seconds(10);
    // A segment of this size is full.
    uint64_t segment_bytes = 4 << 20;
    // While the storage accepts no writes, this number of bytes is kept, and further lines are
    // dropped.
    uint64_t kept_bytes_max = 64 << 20;
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };
  // Continues after the existing segments, which are not changed.
  static absl::StatusOr<std::unique_ptr<SegmentWriter>> Open(std::string folder, Options options);

  // Adds whole lines. After an error the lines are kept and put with the next ones; after
  // RESOURCE_EXHAUSTED they are dropped.
  absl::Status Append(const std::string& lines);
  // Puts the lines that have waited long enough.
  absl::Status Tick();
  // Puts all lines.
  absl::Status Keep();

 private:
  SegmentWriter(std::string folder, Options options, uint64_t number)
      : folder_(std::move(folder)), options_(std::move(options)), number_(number) {}

  const std::string folder_;
  const Options options_;
  // The number of the newest segment, and the content that it will have.
  uint64_t number_;
  std::string content_;
  // The number of bytes of `content_` that the storage already has.
  uint64_t put_ = 0;
  // The time of the last attempt to put lines.
  Time tried_{};
};

// Joins the segments in `folder` and writes the log to the file at `path`. NOT_FOUND if the folder
// has no segments.
absl::Status JoinSegments(const std::string& folder, const std::string& path);

}  // namespace leeway
