// Holds what is trained and for how long: the configured job (job_facts.h), the model, the length,
// the blocks and the interval of cuts. Owns these. The core must pass each worker's registration
// here, and the length once all workers are here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/job_facts.h"

namespace leeway {

// Higher than any clock that a job reaches. Keeps sums of clocks from overflowing.
inline constexpr uint64_t kClockMax = uint64_t{1} << 40;

// Pure; not thread-safe.
class JobModel {
 public:
  // A resumed job begins with the model of its checkpoint.
  explicit JobModel(CoordinatorOptions options);

  const JobFacts& facts() const { return facts_; }
  void ProgramsKeepState() { facts_.ProgramsKeepState(); }

  // Checks the model and the data that a worker reports. Returns INVALID_ARGUMENT if the report
  // cannot be true, and FAILED_PRECONDITION if it contradicts the reports of other workers.
  absl::Status Check(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // Returns FAILED_PRECONDITION if the rank's data has grown since the length was fixed.
  absl::Status CheckSteps(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // With `workers.device: auto`, returns FAILED_PRECONDITION if the first life of this rank ran on
  // another device.
  absl::Status CheckDevice(const v1::RegisterWorkerRequest& request, uint32_t rank,
                           const std::string& who) const;
  // Takes the facts that the worker supplies. Returns true if the worker's update rule becomes the
  // job's.
  bool Take(const v1::RegisterWorkerRequest& request, const std::string& who, uint32_t rank);
  // Returns true if the rank has no data and the job's length is the sum of all ranks' exchanges.
  // Such a rank makes no exchange.
  bool IsIdle(uint32_t rank) const;

  // Does the same as JobFacts::ChooseCodec.
  std::optional<AutoChoice> ChooseCodec(bool servers_on_one_host) {
    return facts_.ChooseCodec(servers_on_one_host);
  }
  // Computes the length from the workers' reports, or from the previous coordinator's record.
  // Returns FAILED_PRECONDITION if no worker has any data.
  absl::StatusOr<v1::JobLength> Measure() const;
  // Fixes the length, and everything that depends on the length.
  void Fix(const v1::JobLength& length);

  // Returns, by rank, the device that was chosen for `auto` in the rank's first life; an empty
  // string while the device is unknown. The list is empty unless workers.device is `auto`.
  const std::vector<std::string>& devices() const { return devices_; }
  // Returns the model's schema; nullopt until the first worker or the checkpoint supplies it.
  const std::optional<v1::ModelSchema>& schema() const { return schema_; }
  // Returns the job's length; nullopt until it is fixed, which happens before the servers make
  // their blocks.
  const std::optional<v1::JobLength>& length() const { return length_; }
  // Returns the number of clocks between cuts; 0 if there is only the last cut.
  uint64_t cut_every() const { return cut_every_; }
  uint64_t block_elements() const { return block_elements_; }
  // Returns the size in bytes of one block with all of its state.
  uint64_t BlockStateBytes() const;
  // Returns the number of shards that have blocks. These are the first ones.
  uint32_t ShardsWithBlocks() const;
  // Returns the highest clock that a worker can reach. `by_batches` is true if the job's length is
  // counted in batches.
  uint64_t LargestClock(bool by_batches) const;

 private:
  absl::Status CheckFactors(const v1::ModelSchema& schema, const std::string& who) const;

  JobFacts facts_;
  std::optional<v1::ModelSchema> schema_;
  // The process that supplied the schema, for messages.
  std::string schema_owner_;
  // The process that supplied the factors of the tensors, for messages; empty until a process has.
  std::string factors_owner_;
  // The number of batches in a pass over each rank's data, by rank; nullopt if the rank has not
  // reported it.
  std::vector<std::optional<uint64_t>> steps_per_epoch_;
  std::vector<std::string> devices_;
  std::optional<v1::JobLength> length_;
  uint64_t cut_every_ = 0;
  uint64_t block_elements_ = 0;
};

}  // namespace leeway
