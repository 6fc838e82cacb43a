// The newest life of each rank that the coordinator has given out, as far as a server knows. The
// server asks the coordinator itself, at the address with which it joined the job. Messages of
// others change nothing here.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"

namespace leeway {

// Pure; not thread-safe.
class LifeBook {
 public:
  // Believes every incarnation.
  LifeBook() = default;
  // Believes what it learns.
  explicit LifeBook(uint32_t ranks) : newest_(ranks, 0) {}

  // By rank, from the coordinator; 0: it has given out none since it was started. Never falls, for
  // a coordinator that was started again knows nobody at first.
  void Learn(const std::vector<uint64_t>& incarnations);

  // OK for the newest life, and for an invalid rank, which others refuse. ABORTED if a newer life
  // exists. UNAVAILABLE if this life is not known here yet: ask the coordinator, and the sender
  // sends the same again.
  absl::Status Check(uint32_t rank, uint64_t incarnation) const;

 private:
  // By rank; empty: all are believed.
  std::vector<uint64_t> newest_;
};

}  // namespace leeway
