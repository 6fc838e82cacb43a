// A log in a storage that can only put whole files. The log consists of the segments
// FOLDER/000000.EXT, 000001.EXT and so on. Each addition puts the newest segment again, until this
// segment is full.
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

// Not thread-safe. Call Keep before the object is destroyed, because otherwise the lines that were
// not put yet are lost.
class SegmentWriter {
 public:
  struct Options {
    // The extension of a segment's name, such as "jsonl".
    std::string extension;
    // The time for which added lines wait. After that the next call of Append or Tick puts them. If
    // the process is killed, only lines added within this time are lost.
    Duration every = std::chrono::seconds(10);
    // The size from which on a segment is full.
    uint64_t segment_bytes = 4 << 20;
    // The most bytes that are kept while the storage accepts no writes. Further lines are dropped.
    uint64_t kept_bytes_max = 64 << 20;
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };
  // Opens the log in `folder`. Adds segments after the existing segments, which are not changed.
  static absl::StatusOr<std::unique_ptr<SegmentWriter>> Open(std::string folder, Options options);

  // Adds whole lines. If the result is RESOURCE_EXHAUSTED, the lines were dropped. After any other
  // error they are kept, and are put with the next lines.
  absl::Status Append(const std::string& lines);
  // Puts the waiting lines if `every` has passed.
  absl::Status Tick();
  // Puts all waiting lines.
  absl::Status Keep();

 private:
  SegmentWriter(std::string folder, Options options, uint64_t number)
      : folder_(std::move(folder)), options_(std::move(options)), number_(number) {}

  const std::string folder_;
  const Options options_;
  // The number of the newest segment, and its content, including lines that were not put yet.
  uint64_t number_;
  std::string content_;
  // The number of bytes of `content_` that the storage already has.
  uint64_t put_ = 0;
  // The time of the last attempt to put lines.
  Time tried_{};
};

// Joins the segments in `folder` and writes the log to the file at `path`. Returns NOT_FOUND if the
// folder has no segments.
absl::Status JoinSegments(const std::string& folder, const std::string& path);

}  // namespace leeway
