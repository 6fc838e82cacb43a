// Which work of each stream may still be under way, so that an error which surfaces late names it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "worker/compute/backend.h"

namespace leeway::cuda {

// CUDA reports a failed kernel at some later call, and not which kernel it was: one of those that
// were queued and not known to be done.
class WorkLog {
 public:
  // Names kept for each stream; a longer queue loses the oldest.
  static constexpr size_t kMax = 512;

  // `what` outlives the log.
  void Queued(Stream stream, const char* what);
  // A mark for what the stream has been given so far.
  uint64_t Mark(Stream stream) const { return Of(stream).queued; }
  // All of the stream up to the mark is done.
  void Done(Stream stream, uint64_t mark);
  // "Gemm", or "one of Gemm, SumRows and 7 more": each name once; "nothing that was queued" if all
  // is done.
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
