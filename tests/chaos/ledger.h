// A model that is a book: each block has one place for each contribution that a job can make, and a
// contribution adds one at its own place in every block. So the servers' weights say which
// contributions were applied, and how often: 0 never, 1 once, 2 twice. Sums of small integers are
// exact in float32. The job's rule is {type: sgd, learning_rate: 1, scaling: linear}, which applies
// each contribution in full, in every mode.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "leeway/v1/coordinator.pb.h"

namespace leeway::testing {

// Thread-compatible.
class Ledger {
 public:
  explicit Ledger(const v1::RegisterWorkerReply& registration);

  // What a worker must register: one tensor of `blocks` full blocks.
  static v1::ModelSchema Schema(uint64_t blocks, uint64_t block_elements);

  uint64_t places() const { return places_; }

  // Writes the contribution of (rank, clock) over the one of the clock before.
  void Write(uint64_t clock, std::span<float> contribution) const;
  // Adds one more at the place of `clock`: a fault, by which the checkers are tried.
  void WriteAgain(uint64_t clock, std::span<float> contribution) const;

  // What is wrong with the weights that the answer to `clock` brought; empty: nothing. They must
  // have of every rank a row of contributions from clock 0 on, without a gap and each once: this
  // rank's own at least up to `clock`, the others' as many as the job's mode promises.
  std::string Check(uint64_t clock, std::span<const float> weights) const;

 private:
  std::string CheckRow(uint64_t clock, uint32_t rank, std::span<const float> row) const;

  v1::TrainingJob job_;
  uint32_t rank_;
  uint64_t block_elements_;
  // Of one rank in a block: clocks that it can reach.
  uint64_t places_;
};

}  // namespace leeway::testing
