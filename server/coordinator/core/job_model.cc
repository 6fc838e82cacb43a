#include "server/coordinator/core/job_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/block_cuts.h"
#include "common/blocks.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/status.h"
#include "config/external.h"
#include "config/length.h"
#include "config/shards.h"
#include "server/coordinator/core/schema.h"

namespace leeway {
namespace {

// Far above the size of any data set. Keeps lengths from overflowing.
constexpr uint64_t kStepsPerEpochMax = uint64_t{1} << 40;

// Removes the factors, which servers must not get outside of gradient exchanges: there they apply
// to the worker's own steps.
void ClearFactors(v1::ModelSchema& schema) {
  for (v1::TensorSpec& tensor : *schema.mutable_tensors()) {
    tensor.clear_factors();
    tensor.clear_begins_block();
  }
}

BlockLayout LayoutOf(const v1::ModelSchema& schema, const JobFacts& facts) {
  return BlockLayout::ForModel(schema.total(), facts.shards(), facts.job().servers().block_bytes(),
                               BlockCutsOf(schema));
}

}  // namespace

JobModel::JobModel(CoordinatorOptions options)
    : facts_(std::move(options)), steps_per_epoch_(facts_.job().workers().count()) {
  if (facts_.job().workers().device() == "auto") {
    devices_ = facts_.options().ranks.devices;
    devices_.resize(steps_per_epoch_.size());
  }
  const auto& resumed = facts_.options().resumed;
  if (!resumed) return;
  schema_ = resumed->manifest.schema();
  schema_owner_ = absl::StrCat("the checkpoint ", resumed->folder);
  // Servers may hold the factors that the previous coordinator sent them, so the factors are fixed.
  if (facts_.options().before) factors_owner_ = schema_owner_;
}

absl::Status JobModel::Check(const v1::RegisterWorkerRequest& request,
                             const std::string& who) const {
  if (request.has_link()) RETURN_IF_ERROR(Annotate(LinkBook::Check(request.link()), who));
  RETURN_IF_ERROR(facts_.CheckUpdate(request, who));
  const std::string& device = request.device();
  if (!device.empty() && device != "cpu" && device != "cuda") {
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": device '", Printable(device), "' is neither cpu nor cuda"));
  }
  if (!request.has_schema()) return absl::OkStatus();
  RETURN_IF_ERROR(Annotate(ValidateSchema(request.schema()), who));
  if (schema_) RETURN_IF_ERROR(CompareSchemas(schema_owner_, *schema_, who, request.schema()));
  RETURN_IF_ERROR(CheckFactors(request.schema(), who));
  if (request.steps_per_epoch() > kStepsPerEpochMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(who, " has ", Counted(request.steps_per_epoch(), "batch"),
                     " in a pass over its data; the maximum is ", kStepsPerEpochMax));
  }
  return absl::OkStatus();
}

absl::Status JobModel::CheckFactors(const v1::ModelSchema& schema, const std::string& who) const {
  for (const v1::TensorSpec& tensor : schema.tensors()) {
    if (IsExternal(facts_.job())) continue;
    if (tensor.begins_block()) {
      return absl::InvalidArgumentError(
          absl::StrCat(who, " asks for a block that begins with tensor '", tensor.name(),
                       "', but only programs of a job with model.type external may do so"));
    }
    if (!tensor.has_factors()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(who, ": tensor '", tensor.name(),
                     "' has factors of its own, which only jobs with model.type external accept: "
                     "set update.factors instead"));
  }
  if (factors_owner_.empty() || !facts_.job().exchange().has_gradient()) return absl::OkStatus();
  return CompareFactors(factors_owner_, *schema_, who, schema);
}

absl::Status JobModel::CheckSteps(const v1::RegisterWorkerRequest& request,
                                  const std::string& who) const {
  // With total_clocks the steps of an epoch are the ranks' mean, which does not limit a single
  // rank.
  if (!length_ || length_->total_clocks() > 0) return absl::OkStatus();
  if (request.steps_per_epoch() <= length_->steps_per_epoch()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, " has ", request.steps_per_epoch(),
                   " batches in a pass over its data, but the job began with at most ",
                   length_->steps_per_epoch(), ": its data has changed"));
}

absl::Status JobModel::CheckDevice(const v1::RegisterWorkerRequest& request, uint32_t rank,
                                   const std::string& who) const {
  if (rank >= devices_.size()) return absl::OkStatus();
  const std::string& began_on = devices_[rank];
  if (began_on.empty() || request.device().empty() || request.device() == began_on) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      who, " computes on ", request.device(), ", but rank ", rank, " began on ", began_on,
      " (workers.device: auto), and another device computes other bits: start it where it can use ",
      began_on, ", and name its rank (--rank)"));
}

bool JobModel::Take(const v1::RegisterWorkerRequest& request, const std::string& who,
                    uint32_t rank) {
  const bool brought = facts_.TakeUpdate(request, who);
  if (request.has_link()) facts_.TakeLink(rank, request.link());
  if (rank < devices_.size() && devices_[rank].empty()) devices_[rank] = request.device();
  if (!request.has_schema()) return brought;
  steps_per_epoch_[rank] = request.steps_per_epoch();
  v1::ModelSchema schema = request.schema();
  if (!facts_.job().exchange().has_gradient()) ClearFactors(schema);
  if (factors_owner_.empty()) factors_owner_ = who;
  if (schema_) {
    // The schema comes from a checkpoint, and the job of that checkpoint may have had other traits.
    if (!length_) TakeTraits(schema, *schema_);
    return brought;
  }
  schema_ = std::move(schema);
  schema_owner_ = who;
  return brought;
}

bool JobModel::IsIdle(uint32_t rank) const {
  const bool leased = facts_.job().data().assignment() == v1::ASSIGNMENT_LEASED;
  return length_ && length_->total_clocks() > 0 && !leased && steps_per_epoch_[rank] == 0;
}

absl::StatusOr<v1::JobLength> JobModel::Measure() const {
  uint64_t steps = facts_.StepsBefore();
  if (steps == 0) {
    std::vector<uint64_t> said;
    for (const auto& of_rank : steps_per_epoch_) {
      if (of_rank) said.push_back(*of_rank);
    }
    steps = StepsPerEpoch(facts_.job(), said);
  }
  if (steps == 0) return absl::FailedPreconditionError("no worker has any training data");
  const auto& resumed = facts_.options().resumed;
  if (!resumed || !resumed->manifest.has_length()) return ComputeLength(facts_.job(), steps);
  const v1::CheckpointManifest& cut = resumed->manifest;
  return ComputeLength(facts_.job(), steps,
                       GoOnFrom(cut.length(), cut.clock(), facts_.job(), steps));
}

void JobModel::Fix(const v1::JobLength& length) {
  length_ = length;
  const v1::Checkpoint& checkpoint = facts_.job().checkpoint();
  cut_every_ = checkpoint.has_every() ? IntervalClocks(checkpoint.every(), length) : 0;
  block_elements_ = LayoutOf(*schema_, facts_).block_elements();
}

uint64_t JobModel::BlockStateBytes() const {
  return StateVectors(facts_.job()) * block_elements_ * sizeof(float);
}

uint32_t JobModel::ShardsWithBlocks() const {
  return LayoutOf(*schema_, facts_).ShardsWithBlocks();
}

uint64_t JobModel::LargestClock(bool by_batches) const {
  // A resumed job may have been shortened, so its workers may be beyond its end. If the length is
  // counted in batches, the number of batches in a clock varies. In both cases the length does not
  // limit clocks.
  if (!length_ || facts_.options().resumed || by_batches) return kClockMax;
  return leeway::LargestClock(*length_, facts_.job().workers().count());
}

}  // namespace leeway
