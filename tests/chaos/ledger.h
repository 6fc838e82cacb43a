// A model that is a ledger: each block has one place for each contribution that a job can make, and
// a contribution adds one at its own place in every block. So the servers' weights say how often
// each contribution was applied: 0, 1 or 2 times. Sums of small integers are exact in float32. The
// job's rule is {type: sgd, learning_rate: 1, scaling: linear}, which applies each contribution in
// full, in every mode.
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

  // Returns the schema that a worker must register: one tensor of `blocks` full blocks.
  static v1::ModelSchema Schema(uint64_t blocks, uint64_t block_elements);

  uint64_t places() const { return places_; }

  // Overwrites the contribution of the previous clock with that of (rank, clock).
  void Write(uint64_t clock, std::span<float> contribution) const;
  // Adds one more at the place of `clock`: a deliberate fault, which the checkers must find.
  void WriteAgain(uint64_t clock, std::span<float> contribution) const;

  // Returns what is wrong with the weights that the answer to `clock` brought; empty if nothing is
  // wrong. The weights must have an unbroken row of contributions from clock 0 on of every rank,
  // each once. This rank's row must reach at least `clock`, and the others' rows as far as the
  // job's mode promises.
  std::string Check(uint64_t clock, std::span<const float> weights) const;

 private:
  std::string CheckRow(uint64_t clock, uint32_t rank, std::span<const float> row) const;

  v1::TrainingJob job_;
  uint32_t rank_;
  uint64_t block_elements_;
  // How many clocks of one rank have a place in a block.
  uint64_t places_;
};

}  // namespace leeway::testing
