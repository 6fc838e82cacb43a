// The newest life of each rank that the coordinator has given out, as far as a server knows. The
// server asks the coordinator itself, at the address with which it joined the job. Messages from
// other processes change nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// A pure class. Not thread-safe.
class LifeBook {
 public:
  // Believes every incarnation.
  LifeBook() = default;
  // Believes the incarnations that it learns.
  explicit LifeBook(uint32_t ranks) : newest_(ranks, 0) {}

  // Learns the incarnations from the coordinator, by rank; 0: it has given out none since it
  // started. A learned incarnation never falls, because a restarted coordinator knows no lives at
  // first.
  void Learn(const std::vector<uint64_t>& incarnations);

  // OK for the newest life, and for an invalid rank, which other checks refuse. ABORTED if a newer
  // life exists. UNAVAILABLE if this life is not known here yet. The server then asks the
  // coordinator, and the sender sends the same again.
  absl::Status Check(uint32_t rank, uint64_t incarnation) const;

 private:
  // By rank. Empty: all incarnations are believed.
  std::vector<uint64_t> newest_;
};

}  // namespace leeway
