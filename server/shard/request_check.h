// Checks a worker's request before it reaches a block's core. Also makes the errors for values that
// cannot be used.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/update/rule.h"
#include "common/wire/payload.h"
#include "leeway/v1/coordinator.pb.h"
#include "leeway/v1/parameter_server.pb.h"
#include "server/store/block_store.h"

namespace leeway {

// A worker's contribution to one block.
struct Contribution {
  // The worker's rank and clock.
  uint32_t rank = 0;
  uint64_t clock = 0;
  uint64_t examples = 0;
  FloatPayload payload;
  // True if this is the mean of the contributions of all workers.
  bool of_all = false;
  // True if another worker's contribution already includes this one (workers.per_host: combine). If
  // true, this contribution has no values and is not added up.
  bool combined = false;
  // Parts that cover the block's trained elements. For each part: the factor of the learning rate,
  // and whether the update skips the part. If empty, the factor is 1 and no element is skipped.
  std::vector<UpdatePart> rates = {};
  // True if the contribution skips the whole block. If true, it has no values.
  bool skips_block = false;

  bool has_values() const { return !combined && !skips_block; }
};

// Thread-safe. All errors are INVALID_ARGUMENT and name the worker, the block and the clock.
class RequestCheck {
 public:
  // What the job allows.
  struct Rules {
    // Whether a contribution may be part of another one.
    bool combines = false;
    // Whether the job's updates have a learning rate.
    bool has_rate = true;
    // Why no worker may send a contribution for all. Empty if one may.
    std::string not_of_all = {};
  };
  // `store` outlives this object and says whether an update may skip parts of a block.
  RequestCheck(const BlockStore& store, uint32_t workers, v1::ModelSchema schema, Rules rules)
      : store_(store), workers_(workers), rules_(std::move(rules)), schema_(std::move(schema)) {}

  // Returns true if this server has the block and the job has the rank.
  bool names(const v1::ExchangeHeader& header) const {
    return store_.Has(header.block()) && header.rank() < workers_;
  }
  // Returns the error for a header for which names() is false.
  absl::Status WrongNames(const v1::ExchangeHeader& header) const;
  // Opens a contribution whose values are in `payload`. Checks that this server has the block, that
  // the job has the rank, and that the number of values fits the block. Encoded values must also be
  // finite.
  absl::StatusOr<Contribution> Open(const v1::ExchangeHeader& header, FloatPayload payload) const;
  // Does the same for a contribution that may be that of all workers, or part of another one, which
  // has no values.
  absl::StatusOr<Contribution> OpenContribution(const v1::ExchangeHeader& header,
                                                FloatPayload payload) const;
  // Returns the rates of contributions that are applied as one aggregate. The result refers to
  // `contributions`. All contributions with examples must have the same rates; the error names two
  // workers whose rates differ.
  absl::StatusOr<std::span<const UpdatePart>> CommonRates(
      uint32_t block, std::span<const Contribution> contributions) const;
  // Returns an error if a value is not finite. Reads all values.
  absl::Status Finite(uint32_t block, const Contribution& contribution) const;
  // Returns the error for an update that overflows: all contributions are finite, but `write`, the
  // result of the update, is not.
  absl::Status Overflow(uint32_t block, const Contribution& contribution,
                        const BlockWrite& write) const;

 private:
  absl::StatusOr<Contribution> OpenCombined(const v1::ExchangeHeader& header,
                                            const FloatPayload& payload) const;
  std::string Element(uint32_t block, size_t index) const;
  absl::StatusOr<std::vector<UpdatePart>> Rates(const v1::ExchangeHeader& header) const;
  // Does the same for a contribution with rates and no payload, which may skip the whole block.
  absl::StatusOr<Contribution> OpenSkipping(const v1::ExchangeHeader& header,
                                            FloatPayload payload) const;

  const BlockStore& store_;
  const uint32_t workers_;
  const Rules rules_;
  // Used for the names of elements in errors.
  const v1::ModelSchema schema_;
};

}  // namespace leeway
