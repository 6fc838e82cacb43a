// What is trained, and for how long: the configured job (job_facts.h), the model, the length, the
// blocks and the interval of cuts. Owns these. The core must tell it what each worker brings, and
// the length once all workers are here.
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

  // Checks what a worker says of model and data. INVALID_ARGUMENT: it cannot be true.
  // FAILED_PRECONDITION: it contradicts what others have said.
  absl::Status Check(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // FAILED_PRECONDITION: the rank's data has grown since the length was fixed.
  absl::Status CheckSteps(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // With `workers.device: auto`. FAILED_PRECONDITION: the rank that the process asks for or will
  // get began on another device.
  absl::Status CheckDevice(const v1::RegisterWorkerRequest& request, uint32_t rank,
                           const std::string& who) const;
  // Takes what the worker brings. Returns true if its update rule becomes the job's.
  bool Take(const v1::RegisterWorkerRequest& request, const std::string& who, uint32_t rank);
  // True if the rank has no data, so that it makes no exchange in a job whose length is the sum of
  // exchanges.
  bool IsIdle(uint32_t rank) const;

  // The same as JobFacts::ChooseCodec.
  std::optional<AutoChoice> ChooseCodec(bool servers_on_one_host) {
    return facts_.ChooseCodec(servers_on_one_host);
  }
  // Computes the length from what the workers have said, or from the previous coordinator's record.
  // FAILED_PRECONDITION: no worker has any data.
  absl::StatusOr<v1::JobLength> Measure() const;
  // Fixes the length, and everything that follows from it.
  void Fix(const v1::JobLength& length);

  // By rank: which device `auto` became in the rank's first life; empty while that is unknown. Has
  // no elements unless the job says `auto`.
  const std::vector<std::string>& devices() const { return devices_; }
  // Absent until the first worker, or the checkpoint, brings it.
  const std::optional<v1::ModelSchema>& schema() const { return schema_; }
  // Absent until it is fixed, which happens before the servers make their blocks.
  const std::optional<v1::JobLength>& length() const { return length_; }
  // The number of clocks between cuts; 0 if there is only the last cut.
  uint64_t cut_every() const { return cut_every_; }
  uint64_t block_elements() const { return block_elements_; }
  // The bytes of one block with all of its state.
  uint64_t BlockStateBytes() const;
  // Shards 0 to this number - 1 have blocks.
  uint32_t ShardsWithBlocks() const;
  // The highest clock that a worker can reach. `by_batches`: the job's length is counted in
  // batches.
  uint64_t LargestClock(bool by_batches) const;

 private:
  absl::Status CheckFactors(const v1::ModelSchema& schema, const std::string& who) const;

  JobFacts facts_;
  std::optional<v1::ModelSchema> schema_;
  // Which process brought the schema.
  std::string schema_owner_;
  // Which process brought the factors of the tensors; empty until one has.
  std::string factors_owner_;
  // By rank: the batches in a pass over its data; absent if the rank did not say.
  std::vector<std::optional<uint64_t>> steps_per_epoch_;
  std::vector<std::string> devices_;
  std::optional<v1::JobLength> length_;
  uint64_t cut_every_ = 0;
  uint64_t block_elements_ = 0;
};

}  // namespace leeway
