// The conditions on a worker's request before a block's core sees it, and the errors for values
// that cannot be used.
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
  // The worker's rank, and its clock.
  uint32_t rank = 0;
  uint64_t clock = 0;
  uint64_t examples = 0;
  FloatPayload payload;
  // Whether it is part of another contribution (workers.per_host: combine). It then does not count
  // in a sum itself.
  bool combined = false;
  // The factors on the learning rate of the block's trained elements. Empty: 1.
  std::vector<UpdatePart> rates = {};
};

// Thread-safe. All errors are INVALID_ARGUMENT and name the worker, the block and the clock.
class RequestCheck {
 public:
  // `store` outlives it. `combines`: a contribution may be part of another one. `has_rate`: the
  // job's updates have a learning rate.
  RequestCheck(const BlockStore& store, uint32_t workers, v1::ModelSchema schema,
               bool combines = false, bool has_rate = true)
      : store_(store),
        workers_(workers),
        combines_(combines),
        has_rate_(has_rate),
        schema_(std::move(schema)) {}

  // Whether this server has the block and the job has the rank.
  bool names(const v1::ExchangeHeader& header) const {
    return store_.Has(header.block()) && header.rank() < workers_;
  }
  // The error if names() is false.
  absl::Status WrongNames(const v1::ExchangeHeader& header) const;
  // Opens a contribution that came with `payload`. The block and the rank must exist here, and the
  // number of values must be that of the block. Encoded values must also be finite.
  absl::StatusOr<Contribution> Open(const v1::ExchangeHeader& header, FloatPayload payload) const;
  // The same for a contribution that may be part of another one. Such a contribution has no values.
  absl::StatusOr<Contribution> OpenContribution(const v1::ExchangeHeader& header,
                                                FloatPayload payload) const;
  // The factors on the learning rate that are common to all contributions of one aggregate,
  // ignoring those that change nothing. The error names two contributions that differ. The result
  // is a view into `contributions`.
  absl::StatusOr<std::span<const UpdatePart>> CommonRates(
      uint32_t block, std::span<const Contribution> contributions) const;
  // An error if a value is not finite. This is a pass over all values.
  absl::Status Finite(uint32_t block, const Contribution& contribution) const;
  // The error if all contributions were finite but `write`, the block after its update, is not: the
  // update overflows.
  absl::Status Overflow(uint32_t block, const Contribution& contribution,
                        const BlockWrite& write) const;

 private:
  std::string Element(uint32_t block, size_t index) const;
  absl::StatusOr<std::vector<UpdatePart>> Rates(const v1::ExchangeHeader& header) const;

  const BlockStore& store_;
  const uint32_t workers_;
  const bool combines_;
  const bool has_rate_;
  // For the names in errors.
  const v1::ModelSchema schema_;
};

}  // namespace leeway
