#include "server/node/configuration_check.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/blocks.h"
#include "common/codec/choose.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/server_address.h"
#include "common/status.h"
#include "config/brought_update.h"
#include "config/external.h"
#include "config/length.h"
#include "config/rules.h"
#include "config/shards.h"
#include "server/coordinator/core/schema.h"
#include "server/core/checkpoint_names.h"

namespace leeway {
namespace {

// The maximum number of steps in an epoch. It is far above any data set, and the same as in the
// coordinator.
constexpr uint64_t kStepsPerEpochMax = uint64_t{1} << 40;
// The maximum generation, which counts how often a job has gone back, and the maximum epoch, which
// counts how often the placement has changed. No job reaches these limits. No server misses more
// than kMissedMax generations or epochs.
constexpr uint64_t kGenerationMax = uint64_t{1} << 32;
constexpr uint64_t kEpochMax = uint64_t{1} << 40;
constexpr uint64_t kMissedMax = uint64_t{1} << 20;

template <typename... Parts>
absl::Status Wrong(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("configuration: ", parts...));
}

// Checks the values that follow from the job and from the length of its longest pass over the data.
absl::Status CheckLength(const v1::ConfigureRequest& request, const v1::TrainingJob& job) {
  const uint64_t steps = request.length().steps_per_epoch();
  if (steps == 0 || steps > kStepsPerEpochMax) {
    return Wrong("length.steps_per_epoch: is ", steps, ", must be from 1 to ", kStepsPerEpochMax);
  }
  const v1::JobLength& said = request.length();
  const v1::JobLength length = ComputeLength(job, steps, {said.first_clock(), said.first_step()});
  if (request.length().SerializeAsString() != length.SerializeAsString()) {
    return Wrong("length: has ", Counted(request.length().steps(), "step"), " and ",
                 Counted(request.length().clocks(), "clock"), ", but this job, with ",
                 Counted(steps, "step"), " in an epoch, has ", Counted(length.steps(), "step"),
                 " and ", Counted(length.clocks(), "clock"));
  }
  const uint64_t every =
      job.checkpoint().has_every() ? IntervalClocks(job.checkpoint().every(), length) : 0;
  if (request.cut_every() == every) return absl::OkStatus();
  return Wrong("cut_every: is ", request.cut_every(), ", but checkpoint.every of this job is ",
               Counted(every, "clock"));
}

absl::Status CheckModel(const v1::ConfigureRequest& request, const v1::TrainingJob& job) {
  RETURN_IF_ERROR(ValidateSchema(request.schema()));
  for (const v1::TensorSpec& tensor : request.schema().tensors()) {
    RETURN_IF_ERROR(CheckPrintable("configuration: schema.tensors.name", tensor.name()));
    if (tensor.has_factors() && !IsExternal(job)) {
      return Wrong("schema.tensors.factors: only external jobs may have them");
    }
    if (tensor.begins_block() && !IsExternal(job)) {
      return Wrong("schema.tensors.begins_block: only external jobs may have it");
    }
  }
  const BlockLayout layout =
      BlockLayout::ForModel(request.schema().total(), ShardsOf(job), job.servers().block_bytes());
  if (request.block_elements() == layout.block_elements()) return absl::OkStatus();
  return Wrong("block_elements: is ", request.block_elements(), ", but blocks of this job have ",
               layout.block_elements(), " elements");
}

absl::Status CheckCodec(const v1::ConfigureRequest& request) {
  if (!request.has_auto_codec()) return absl::OkStatus();
  const v1::Codec& codec = request.auto_codec();
  if (codec.type_case() == v1::Codec::TYPE_NOT_SET || codec.has_auto_()) {
    return Wrong("auto_codec: it does not name a codec");
  }
  std::vector<Fault> faults;
  CheckRules(codec, "auto_codec", faults);
  if (faults.empty()) return absl::OkStatus();
  return Wrong(faults.front().path, ": ", faults.front().message);
}

// Checks the update rule that a worker of an external job has set. A server that joined later has
// received this rule with the job.
absl::Status CheckUpdate(const v1::ConfigureRequest& request, const v1::TrainingJob& job) {
  if (!request.has_update()) {
    return BringsUpdate(job) ? Wrong("update: missing, and the job itself has no update")
                             : absl::OkStatus();
  }
  const bool brought = IsExternal(job) && job.exchange().has_gradient();
  if (!brought) return Wrong("update: only external jobs with a gradient exchange may have it");
  RETURN_IF_ERROR(Annotate(ResolveBroughtUpdate(request.update()).status(), "configuration"));
  if (!job.has_update() || MeansRule(request.update(), job.update())) return absl::OkStatus();
  return Wrong("update: is ", UpdateYaml(request.update()), ", but the job's update is ",
               UpdateYaml(job.update()));
}

absl::Status CheckAddresses(const v1::ConfigureRequest& request, uint32_t most) {
  const auto servers = static_cast<uint32_t>(request.servers_size());
  const auto local = static_cast<uint32_t>(request.local_servers_size());
  if (servers != most || local != most) {
    return Wrong("servers, local_servers: have ", servers, " and ", local,
                 " entries; each must have ", most);
  }
  // A server that has never registered has no address.
  for (const std::string& address : request.servers()) {
    if (!address.empty()) RETURN_IF_ERROR(CheckServerAddress("configuration: servers", address));
  }
  for (const v1::LocalEndpoint& each : request.local_servers()) {
    RETURN_IF_ERROR(CheckPrintable("configuration: local_servers.host", each.host()));
    if (each.address().empty()) continue;
    RETURN_IF_ERROR(CheckLocalAddress("configuration: local_servers.address", each.address()));
  }
  return absl::OkStatus();
}

absl::Status CheckPlace(const v1::ConfigureRequest& request, const v1::ShardPlace& place,
                        uint32_t most) {
  const auto here = [&](uint32_t server) {
    return server < most && !request.servers(static_cast<int>(server)).empty();
  };
  if (!here(place.owner())) {
    return Wrong("placement.shards.owner: the job has no server ", place.owner());
  }
  if (!place.has_replica()) {
    if (!place.synced() && place.since_epoch() == 0) return absl::OkStatus();
    return Wrong("placement.shards: synced since epoch ", place.since_epoch(),
                 ", but the shard has no replica");
  }
  if (!here(place.replica()) || place.replica() == place.owner()) {
    return Wrong("placement.shards.replica: server ", place.replica(),
                 " cannot hold the replica for server ", place.owner());
  }
  if (place.since_epoch() > 0 && place.since_epoch() <= request.placement().epoch()) {
    return absl::OkStatus();
  }
  return Wrong("placement.shards.since_epoch: is ", place.since_epoch(),
               ", but the placement is of epoch ", request.placement().epoch());
}

absl::Status CheckPlacement(const v1::ConfigureRequest& request, const v1::TrainingJob& job) {
  const uint32_t shards = ShardsOf(job);
  const v1::Placement& placement = request.placement();
  if (placement.epoch() == 0 || placement.epoch() > kEpochMax) {
    return Wrong("placement.epoch: is ", placement.epoch(), ", must be from 1 to ", kEpochMax);
  }
  if (static_cast<uint32_t>(placement.shards_size()) != shards) {
    return Wrong("placement: it has ", Counted(placement.shards_size(), "shard"), "; the job has ",
                 shards);
  }
  for (const v1::ShardPlace& place : placement.shards()) {
    RETURN_IF_ERROR(CheckPlace(request, place, ServersMost(job)));
  }
  return absl::OkStatus();
}

bool IsCheckpointOf(const std::string& run_dir, const std::string& folder) {
  const size_t dash = folder.rfind('-');
  uint64_t clock = 0;
  return dash != std::string::npos && absl::SimpleAtoi(folder.substr(dash + 1), &clock) &&
         folder == CheckpointFolder(run_dir, clock);
}

absl::Status CheckPaths(const v1::ConfigureRequest& request, const ServerFacts& facts) {
  if (request.run_dir() != facts.run_dir) {
    return absl::PermissionDeniedError(absl::StrCat(
        "configuration: run_dir: '", Printable(request.run_dir()),
        "' is not the run folder that this server was told when it joined, '", facts.run_dir, "'"));
  }
  const std::string& checkpoint = request.checkpoint();
  if (checkpoint.empty()) return absl::OkStatus();
  if (!request.load()) return Wrong("checkpoint: a checkpoint is named, but `load` is not set");
  if (IsCheckpointOf(facts.run_dir, checkpoint)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("configuration: checkpoint: '", Printable(checkpoint),
                   "' is not a checkpoint of the run folder '", facts.run_dir, "'"));
}

}  // namespace

absl::Status CheckConfiguration(const v1::ConfigureRequest& request, const ServerFacts& facts) {
  if (request.generation() > kGenerationMax) {
    return Wrong("generation: is ", request.generation(), ", must be at most ", kGenerationMax);
  }
  RETURN_IF_ERROR(CheckCodec(request));
  v1::TrainingJob job = facts.job;
  if (request.has_auto_codec()) ResolveAuto(request.auto_codec(), *job.mutable_compression());
  if (HasAuto(job.compression()))
    return Wrong("auto_codec: missing, but the job's compression is auto");
  RETURN_IF_ERROR(CheckUpdate(request, job));
  RETURN_IF_ERROR(CheckModel(request, job));
  RETURN_IF_ERROR(CheckLength(request, job));
  RETURN_IF_ERROR(CheckAddresses(request, ServersMost(job)));
  RETURN_IF_ERROR(CheckPlacement(request, job));
  return CheckPaths(request, facts);
}

absl::Status CheckFollows(const v1::ConfigureRequest& held, const v1::ConfigureRequest& request) {
  RETURN_IF_ERROR(
      CompareSchemas("this server", held.schema(), "the configuration", request.schema()));
  if (held.schema().SerializeAsString() != request.schema().SerializeAsString()) {
    return Wrong("schema: this is not the model that this server holds");
  }
  const uint64_t missed = request.generation() - held.generation();
  if (request.generation() > held.generation() && missed > kMissedMax) {
    return Wrong("generation: ", request.generation(), " is too far ahead; this server is at ",
                 held.generation());
  }
  const uint64_t epoch = request.placement().epoch(), before = held.placement().epoch();
  if (epoch > before && epoch - before > kMissedMax) {
    return Wrong("placement.epoch: ", epoch, " is too far ahead; this server is at ", before);
  }
  if (request.generation() != held.generation()) return absl::OkStatus();
  v1::ConfigureRequest same = held;
  *same.mutable_placement() = request.placement();
  *same.mutable_servers() = request.servers();
  *same.mutable_local_servers() = request.local_servers();
  same.set_load(request.load());
  same.set_checkpoint(request.checkpoint());
  if (same.SerializeAsString() == request.SerializeAsString()) return absl::OkStatus();
  return Wrong(
      "only the placement may differ from the configuration that this server already has for this "
      "generation");
}

}  // namespace leeway
