// Records the work of each stream that may still be running. An error that is reported late can
// then name that work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker/compute/backend.h"

namespace leeway::cuda {

// CUDA reports a failed kernel at some later call, and does not say which kernel failed. It is
// one of the kernels that were queued and are not known to be done.
class WorkLog {
 public:
  // The number of names that are kept for each stream. In a longer queue, the oldest names are
  // lost.
  static constexpr size_t kMax = 512;

  // Adds a piece of work. `what` must outlive the log.
  void Queued(Stream stream, const char* what);
  // Returns a mark after the work that the stream has received so far.
  uint64_t Mark(Stream stream) const { return Of(stream).queued; }
  // Notes that all work of the stream up to the mark is done.
  void Done(Stream stream, uint64_t mark);
  // Returns the names of the work that may have failed, each name once: "Gemm", or "one of Gemm,
  // SumRows and 7 more". Returns "nothing that was queued" if all work is done.
  std::string Suspects() const;

 private:
  struct Line {
    std::deque<const char*> names;
    uint64_t queued = 0;
  };
  const Line& Of(Stream stream) const { return lines_[static_cast<size_t>(stream)]; }
  Line& Of(Stream stream) { return lines_[static_cast<size_t>(stream)]; }

  std::array<Line, kStreams> lines_;
};

}  // namespace leeway::cuda
