// What is trained, and how long: the job as it was configured (job_facts.h), the model, the length,
// the blocks and the interval of cuts. Owns these; must be told what each worker brings, and the
// length once everybody is here.
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

// Above any clock that a job reaches; keeps sums of clocks from overflowing.
inline constexpr uint64_t kClockMax = uint64_t{1} << 40;

// Pure; not thread-safe.
class JobModel {
 public:
  // A resumed job has the model of its checkpoint.
  explicit JobModel(CoordinatorOptions options);

  const JobFacts& facts() const { return facts_; }
  void ProgramsKeepState() { facts_.ProgramsKeepState(); }

  // What a worker says of model and data. INVALID_ARGUMENT: it cannot be true; FAILED_PRECONDITION:
  // others say otherwise.
  absl::Status Check(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // FAILED_PRECONDITION: the rank's data has grown since the length was fixed.
  absl::Status CheckSteps(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // FAILED_PRECONDITION: with `workers.device: auto` the rank, which the process asks for or is
  // going to get, began on another device.
  absl::Status CheckDevice(const v1::RegisterWorkerRequest& request, uint32_t rank,
                           const std::string& who) const;
  // True: the job's update rule is the worker's from now on.
  bool Take(const v1::RegisterWorkerRequest& request, const std::string& who, uint32_t rank);
  // The job's length is a sum of exchanges, and the rank makes none: it has no data.
  bool IsIdle(uint32_t rank) const;

  // As JobFacts::ChooseCodec; by the links that the workers have measured.
  std::optional<AutoChoice> ChooseCodec(bool servers_on_one_host) {
    return facts_.ChooseCodec(servers_on_one_host);
  }
  // The length by what the workers have said, or the record of the coordinator before.
  // FAILED_PRECONDITION: nobody has any data.
  absl::StatusOr<v1::JobLength> Measure() const;
  // The length is this one from now on, and so is what follows from it.
  void Fix(const v1::JobLength& length);

  // By rank: what `auto` came to in its first life; empty: not known yet. None at all where the job
  // does not say `auto`.
  const std::vector<std::string>& devices() const { return devices_; }
  // Absent until the first worker brings it, or the checkpoint does.
  const std::optional<v1::ModelSchema>& schema() const { return schema_; }
  // Absent until it is fixed, before the servers make their blocks.
  const std::optional<v1::JobLength>& length() const { return length_; }
  // Clocks from cut to cut; 0: there is only the last one.
  uint64_t cut_every() const { return cut_every_; }
  uint64_t block_elements() const { return block_elements_; }
  // Bytes of one block with all of its state.
  uint64_t BlockStateBytes() const;
  // Shards 0 up to this one have blocks.
  uint32_t ShardsWithBlocks() const;
  // That a worker can reach. `by_batches`: the job's length is counted in batches.
  uint64_t LargestClock(bool by_batches) const;

 private:
  absl::Status CheckFactors(const v1::ModelSchema& schema, const std::string& who) const;

  JobFacts facts_;
  std::optional<v1::ModelSchema> schema_;
  // Who brought it.
  std::string schema_owner_;
  // Who has said its tensors' factors; empty: nobody in this job yet.
  std::string factors_owner_;
  // By rank: batches in a pass over its data; absent if it did not say.
  std::vector<std::optional<uint64_t>> steps_per_epoch_;
  std::vector<std::string> devices_;
  std::optional<v1::JobLength> length_;
  uint64_t cut_every_ = 0;
  uint64_t block_elements_ = 0;
};

}  // namespace leeway
