#include "server/node/control_service.h"

#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/service/unary_call.h"
#include "common/status.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/restore.h"
#include "server/coordinator/core/schema.h"
#include "server/node/configuration_check.h"

namespace leeway {

void ControlService::Await(ServerQueue* queue) {
  queue_ = queue;
  ServeUnary<v1::ConfigureRequest, v1::ConfigureReply>(
      queue, this, "leeway.v1.ShardControl.Configure",
      [this, queue](const v1::ConfigureRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] {
          // Do not log this error: the coordinator repeats the command until the server has joined.
          const absl::Status joined = membership_.CheckJoined(request.job());
          const absl::Status status = joined.ok() ? Configure(request) : joined;
          if (joined.ok() && !status.ok()) {
            spdlog::error("cannot apply the configuration: {}", std::string(status.message()));
          }
          done(Reply<v1::ConfigureReply>(status));
        });
      });
  ServeUnary<v1::SetLiveRequest, v1::SetLiveReply>(
      queue, this, "leeway.v1.ShardControl.SetLive",
      [this](const v1::SetLiveRequest& request, auto done) {
        done(Reply<v1::SetLiveReply>(SetLive(request)));
      });
  ServeUnary<v1::CommitSetRequest, v1::CommitSetReply>(
      queue, this, "leeway.v1.ShardControl.CommitSet",
      [this, queue](const v1::CommitSetRequest& request, auto done) {
        done(Reply<v1::CommitSetReply>(data_.CommitSet(request, queue)));
      });
  ServeUnary<v1::SaveRequest, v1::SavedShard>(
      queue, this, "leeway.v1.ShardControl.Save",
      [this, queue](const v1::SaveRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] { done(Save(request)); });
      });
  ServeUnary<v1::ShutdownRequest, v1::ShutdownReply>(
      queue, this, "leeway.v1.ShardControl.Shutdown",
      [this](const v1::ShutdownRequest& request, auto done) {
        done(Reply<v1::ShutdownReply>(Shutdown(request)));
      });
}

absl::Status ControlService::SetLive(const v1::SetLiveRequest& request) {
  RETURN_IF_ERROR(membership_.CheckJoined(request.job()));
  const uint32_t workers = membership_.client().served().job.workers().count();
  if (request.rank() >= workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rank: ", request.rank(), " does not exist; the job has ", Counted(workers, "worker")));
  }
  // This call sets the state for the shards that the server has now. When the server gets more
  // shards, the coordinator calls again.
  data_.SetLive(request.rank(), request.live());
  return absl::OkStatus();
}

absl::Status ControlService::Shutdown(const v1::ShutdownRequest& request) {
  RETURN_IF_ERROR(membership_.CheckJoined(request.job()));
  if (request.outcome() < v1::JOB_FINISHED || request.outcome() > v1::JOB_FAILED) {
    return absl::InvalidArgumentError(
        absl::StrCat("outcome: ", request.outcome(), " is not an outcome of a job"));
  }
  membership_.End(request.outcome());
  return absl::OkStatus();
}

absl::StatusOr<ControlService::Take> ControlService::HowToTake(
    const v1::ConfigureRequest& request) {
  if (model_ == nullptr || model_->generation() < request.generation()) return Take::kAll;
  if (model_->Is(request)) return Take::kHere;
  const bool newer =
      model_->generation() == request.generation() && model_->epoch() < request.placement().epoch();
  if (newer) return Take::kPlacement;
  return absl::FailedPreconditionError(
      absl::StrCat("the server is at generation ", model_->generation(), ", epoch ",
                   model_->epoch(), "; this configuration is of generation ", request.generation(),
                   ", epoch ", request.placement().epoch()));
}

absl::Status ControlService::CheckTakeable(const v1::ConfigureRequest& request, Take take) const {
  const uint32_t index = membership_.client().self().index;
  const CoordinatorClient::Served& served = membership_.client().served();
  RETURN_IF_ERROR(CheckConfiguration(request, {served.job, index, served.run_dir}));
  if (model_ != nullptr) RETURN_IF_ERROR(model_->CheckFollows(request));
  if (take == Take::kAll && !request.load()) {
    for (const v1::ShardPlace& place : request.placement().shards()) {
      if (place.owner() != index) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("server ", index, " cannot own a shard of generation ", request.generation(),
                       ", because it has no blocks of that generation"));
    }
  }
  if (!request.load() || request.checkpoint().empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInRunFolder(served.run_dir, request.checkpoint()));
  ASSIGN_OR_RETURN(const CheckpointReader reader,
                   CheckpointReader::Open(request.checkpoint(), CheckpointVerify::kHeaders));
  return CompareSchemas("the checkpoint", reader.manifest().schema(), "the configuration",
                        request.schema());
}

void ControlService::Close() {
  MutexLock configuring(configuring_);
  closed_ = true;
  Retire();
}

void ControlService::Retire() {
  membership_.Hold({});
  model_.reset();
}

void ControlService::Release(uint64_t generation) {
  data_.table().Serve({membership_.client().served().id, generation, {}, {}, nullptr});
  Retire();
}

absl::Status ControlService::MakeModel(const v1::ConfigureRequest& request) {
  // The old model is released first, because two models would need twice the memory and would write
  // the same files.
  Release(request.generation());
  const auto report = [this, generation = request.generation()](
                          uint32_t shard, uint64_t cut,
                          const absl::StatusOr<v1::SavedShard>& saved) {
    ReportCut(generation, shard, cut, saved);
  };
  const CoordinatorClient& client = membership_.client();
  ASSIGN_OR_RETURN(model_, HeldModel::Make({.job = client.served().job,
                                            .job_id = client.served().id,
                                            .server = client.self().index,
                                            .host = client.self().host,
                                            .queue = queue_,
                                            .coordinator = client.self().coordinator,
                                            .security = &security_,
                                            .report = report},
                                           request));
  return absl::OkStatus();
}

absl::Status ControlService::Configure(const v1::ConfigureRequest& request) {
  MutexLock configuring(configuring_);
  if (closed_) return absl::UnavailableError("the server is ending");
  ASSIGN_OR_RETURN(const Take take, HowToTake(request));
  if (take == Take::kHere) return absl::OkStatus();
  RETURN_IF_ERROR(CheckTakeable(request, take));
  if (take == Take::kAll) RETURN_IF_ERROR(MakeModel(request));
  const absl::Status placed = model_->Place(request);
  if (!placed.ok()) {
    // The server does not have all shards of the placement, so it serves no shard. The coordinator
    // decides what to do.
    Release(request.generation());
    return placed;
  }
  data_.table().Serve(model_->holdings());
  spdlog::info(
      "{}{}", model_->Describe(),
      request.load() && !request.checkpoint().empty() ? ", from " + request.checkpoint() : "");
  membership_.Hold({model_->generation(), model_->epoch(), model_->replicated()});
  return absl::OkStatus();
}

absl::StatusOr<v1::SavedShard> ControlService::Save(const v1::SaveRequest& request) {
  RETURN_IF_ERROR(membership_.CheckJoined(request.job()));
  MutexLock configuring(configuring_);
  if (model_ == nullptr) return absl::UnavailableError("the server has no model yet");
  if (model_->generation() != request.generation()) {
    return absl::FailedPreconditionError(absl::StrCat("cannot save generation ",
                                                      request.generation(), "; this server holds ",
                                                      "generation ", model_->generation()));
  }
  return model_->Save(request.shard(), request.clock());
}

void ControlService::ReportCut(uint64_t generation, uint32_t shard, uint64_t cut,
                               const absl::StatusOr<v1::SavedShard>& saved) {
  v1::ShardSavedRequest request;
  request.set_generation(generation);
  request.set_index(shard);
  request.set_clock(cut);
  if (saved.ok()) {
    *request.mutable_shard() = *saved;
  } else {
    request.set_error(std::string(saved.status().message()));
    spdlog::error("the cut at clock {} failed: {}", cut, request.error());
  }
  const absl::Status status = membership_.client().ReportSaved(
      request, [this](Duration pause) { return !membership_.IsOverAfter(pause); });
  if (!status.ok()) {
    spdlog::warn("cannot report the cut at clock {}: {}", cut, std::string(status.message()));
  }
}

}  // namespace leeway
