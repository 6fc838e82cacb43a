// For each rank, the newest incarnation that the coordinator has assigned, as far as a server
// knows. The server learns incarnations only from the coordinator, at the address with which it
// joined the job. Messages from other processes change nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// A pure class. Not thread-safe.
class LifeBook {
 public:
  // Accepts every incarnation.
  LifeBook() = default;
  // Accepts only the incarnations that it learns.
  explicit LifeBook(uint32_t ranks) : newest_(ranks, 0) {}

  // Learns the coordinator's incarnations, by rank. An entry is 0 if the coordinator has assigned
  // no incarnation since it started. A lower number never replaces an incarnation, because a
  // restarted coordinator knows no lives at first.
  void Learn(const std::vector<uint64_t>& incarnations);

  // Returns OK for the newest life, and for an invalid rank, which other checks refuse. Returns
  // ABORTED if a newer life exists, and UNAVAILABLE if this life is not known here yet. After
  // UNAVAILABLE the server asks the coordinator, and the sender repeats its message.
  absl::Status Check(uint32_t rank, uint64_t incarnation) const;

 private:
  // The newest incarnation by rank. If empty, all incarnations are accepted.
  std::vector<uint64_t> newest_;
};

}  // namespace leeway
