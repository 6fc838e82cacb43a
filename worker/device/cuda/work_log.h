// Records the work of each stream that may still be running, so that an error which is reported
// late names it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker/compute/backend.h"

namespace leeway::cuda {

// CUDA reports a failed kernel at some later call, and does not say which kernel it was: one of
// those that were queued and are not known to be done.
class WorkLog {
 public:
  // The number of names that are kept for each stream. A longer queue loses the oldest.
  static constexpr size_t kMax = 512;

  // Adds a piece of work. `what` must outlive the log.
  void Queued(Stream stream, const char* what);
  // A mark after the work that the stream has been given so far.
  uint64_t Mark(Stream stream) const { return Of(stream).queued; }
  // Notes that all work of the stream up to the mark is done.
  void Done(Stream stream, uint64_t mark);
  // The names of the work that may have failed, each once: "Gemm", or "one of Gemm, SumRows and 7
  // more". "nothing that was queued" if all work is done.
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
