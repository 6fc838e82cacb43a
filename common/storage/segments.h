// A log in a storage that only puts whole files: segments FOLDER/000000.EXT, 000001.EXT and so on,
// whose contents one after the other are the log. The newest segment is put again with what was
// added to it, until it is full.
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

// Not thread-safe. Without Keep at the end, what was not put yet is lost.
class SegmentWriter {
 public:
  struct Options {
    // "jsonl"
    std::string extension;
    // What is added is put at the latest after so long, if Append or Tick is called then. So long
    // is what a kill loses.
    Duration every = std::chrono::seconds(10);
    // A segment that has so many bytes is full.
    uint64_t segment_bytes = 4 << 20;
    // While nothing can be put, so much is kept, and what is added beyond is dropped.
    uint64_t kept_bytes_max = 64 << 20;
    std::function<Time()> now = [] { return std::chrono::steady_clock::now(); };
  };
  // Goes on behind the segments that are there; those are not changed.
  static absl::StatusOr<std::unique_ptr<SegmentWriter>> Open(std::string folder, Options options);

  // Whole lines. After an error they are kept, and put with the next ones; RESOURCE_EXHAUSTED: they
  // are dropped.
  absl::Status Append(const std::string& lines);
  // Puts what has waited long enough.
  absl::Status Tick();
  // Puts all.
  absl::Status Keep();

 private:
  SegmentWriter(std::string folder, Options options, uint64_t number)
      : folder_(std::move(folder)), options_(std::move(options)), number_(number) {}

  const std::string folder_;
  const Options options_;
  // Of the newest segment, and what it will hold.
  uint64_t number_;
  std::string content_;
  // Of the content, so many bytes are in the storage.
  uint64_t put_ = 0;
  // When it was last tried.
  Time tried_{};
};

// Writes the log in the segments of `folder` to the file at `path`. NOT_FOUND if there are none.
absl::Status JoinSegments(const std::string& folder, const std::string& path);

}  // namespace leeway
