#include "server/server_node.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/channel.h"
#include "common/grpc_status.h"
#include "common/protocol.h"
#include "common/status.h"
#include "server/checkpoint/restore.h"
#include "server/rpc/unary_call.h"

namespace leeway {
namespace {

constexpr Duration kTick = std::chrono::milliseconds(250);
constexpr Duration kCallAtMost = std::chrono::seconds(5);

std::unique_ptr<grpc::ClientContext> Within(Duration limit) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() +
                        std::chrono::duration_cast<std::chrono::microseconds>(limit));
  return context;
}

// A sync checkpoint is one version of everything.
absl::Status CheckCut(const v1::CheckpointManifest& manifest, const ElementRange& range,
                      const RangeProgress& progress) {
  const bool sync = manifest.job().consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
  if (!sync || progress.version == manifest.clock()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("the checkpoint at clock ", manifest.clock(),
                                          " holds version ", progress.version, " from element ",
                                          range.offset, " on: it is not one cut"));
}

BlockProgress ProgressFor(RangeProgress saved, const v1::TrainingJob& job) {
  BlockProgress progress{saved.version, std::move(saved.clocks)};
  const bool sync = job.consistency().mode() == v1::CONSISTENCY_MODE_SYNC;
  if (sync || progress.clocks.size() != job.workers().count()) {
    const auto slowest = std::min_element(progress.clocks.begin(), progress.clocks.end());
    const uint64_t clock = slowest == progress.clocks.end() ? 0 : *slowest;
    progress.clocks.assign(job.workers().count(), clock);
    // A sync block's version is the clock that it has been brought to.
    if (sync) progress.version = clock;
  }
  return progress;
}

// Where the versions of a server's blocks lie, for workers on this host to read: the current and
// the previous one, and those that a checkpoint or slow readers hold. It costs nothing before it is
// used. Null, so that versions travel in messages, where pages would be wasted on small blocks or
// the system gives none.
std::shared_ptr<SharedArena> MakeVersionMemory(const BlockLayout& layout, uint32_t server) {
  constexpr uint64_t kPageBytes = 4096;
  constexpr uint64_t kBlockBytesMin = 1024;
  constexpr uint64_t kVersions = 5;
  constexpr uint64_t kSpareBytes = 64 << 20;
  const uint64_t block_bytes = layout.Range(0).count * sizeof(float);
  if (block_bytes < kBlockBytesMin) return nullptr;
  const uint64_t pages = (block_bytes + kPageBytes - 1) / kPageBytes;
  auto memory =
      SharedArena::Create(kVersions * layout.BlocksOn(server) * pages * kPageBytes + kSpareBytes);
  if (memory.ok()) return *memory;
  spdlog::warn("no shared memory: {}", std::string(memory.status().message()));
  return nullptr;
}

}  // namespace

absl::Status LoadShard(const std::string& checkpoint, const v1::TrainingJob& job, Shard& shard) {
  ASSIGN_OR_RETURN(const CheckpointReader reader,
                   CheckpointReader::Open(checkpoint, CheckpointVerify::kHeaders));
  BlockStore& store = shard.store();
  const BlockLayout& layout = store.layout();
  if (reader.manifest().schema().total() != layout.total()) {
    return absl::FailedPreconditionError(
        absl::StrCat("checkpoint ", checkpoint, " holds ", reader.manifest().schema().total(),
                     " values, the job's model has ", layout.total()));
  }
  for (uint32_t block = store.server(); block < layout.blocks(); block += layout.servers()) {
    const ElementRange range = layout.Range(block);
    BlockValues values;
    auto read = [&](std::string_view key, SharedFloats& target) {
      return reader.ReadRange(key, range, {target.mutable_data(), range.count});
    };
    values.weights = store.Allocate(block);
    RETURN_IF_ERROR(read("weights", values.weights));
    for (const std::string& name : store.slot_names()) {
      values.slots.push_back(store.AllocateSlot(block));
      RETURN_IF_ERROR(Annotate(read(name, values.slots.back()),
                               "the job's update rule does not fit the checkpoint"));
    }
    if (std::find(reader.keys().begin(), reader.keys().end(), kShadowKey) != reader.keys().end()) {
      values.shadow = store.AllocateSlot(block);
      RETURN_IF_ERROR(read(kShadowKey, values.shadow));
    }
    ASSIGN_OR_RETURN(RangeProgress progress, reader.Progress(range));
    RETURN_IF_ERROR(CheckCut(reader.manifest(), range, progress));
    shard.Load(block, std::move(values), ProgressFor(std::move(progress), job));
  }
  return absl::OkStatus();
}

ServerNode::~ServerNode() = default;

absl::Status ServerNode::Join(const Options& options, Time deadline) {
  options_ = options;
  coordinator_ = v1::Coordinator::NewStub(MakeChannel(options.coordinator));
  absl::StatusOr<v1::RegisterServerReply> reply;
  do {
    reply = Register();
  } while ((absl::IsUnavailable(reply.status()) || absl::IsDeadlineExceeded(reply.status())) &&
           std::chrono::steady_clock::now() < deadline);
  RETURN_IF_ERROR(Annotate(
      reply.status(), absl::StrCat("registering server ", options.index, " (", options.advertised,
                                   ") with the coordinator at ", options.coordinator)));
  job_ = reply->job();
  job_id_ = reply->job_id();
  MutexLock lock(mutex_);
  joined_ = true;
  return absl::OkStatus();
}

absl::StatusOr<v1::RegisterServerReply> ServerNode::Register() {
  v1::RegisterServerRequest request;
  *request.mutable_build() = ThisBuild();
  request.set_index(options_.index);
  request.set_address(options_.advertised);
  request.set_local_address(options_.local_address);
  request.set_host(options_.host);
  request.set_nonce(options_.nonce);
  auto context = Within(kCallAtMost);
  context->set_wait_for_ready(true);
  v1::RegisterServerReply reply;
  RETURN_IF_ERROR(FromGrpc(coordinator_->RegisterServer(context.get(), request, &reply)));
  return reply;
}

ServerNode::Outcome ServerNode::WaitUntilOver() {
  const Duration every =
      std::min<Duration>(FromSeconds(job_.limits().lease_seconds()) / 4, std::chrono::seconds(1));
  const Duration patience = FromSeconds(job_.limits().start_seconds());
  Time heard = std::chrono::steady_clock::now();
  Time next_heartbeat = heard;
  while (true) {
    {
      MutexLock lock(mutex_);
      if (!over_) changed_.WaitUntil(mutex_, std::chrono::steady_clock::now() + kTick);
      if (over_) return Outcome::kShutDown;
    }
    parameter_service_.Tick();
    const Time now = std::chrono::steady_clock::now();
    if (now < next_heartbeat) continue;
    next_heartbeat = now + every;
    absl::Status status = Heartbeat();
    // A coordinator that was killed and started again knows nobody.
    if (absl::IsFailedPrecondition(status)) status = Register().status();
    // Its job has ended while this server did not hear it.
    if (absl::IsAlreadyExists(status)) return Outcome::kShutDown;
    if (status.ok()) heard = std::chrono::steady_clock::now();
    if (std::chrono::steady_clock::now() - heard > patience) {
      spdlog::error("the coordinator at {} has not answered for {:.0f} s: {}", options_.coordinator,
                    Seconds(patience), std::string(status.message()));
      return Outcome::kCoordinatorLost;
    }
  }
}

absl::Status ServerNode::Heartbeat() {
  v1::ServerHeartbeatRequest request;
  request.set_job(job_id_);
  request.set_index(options_.index);
  v1::ServerHeartbeatReply reply;
  // Short, because requests that wait are given up by the same thread.
  auto context = Within(std::chrono::seconds(1));
  return FromGrpc(coordinator_->ServerHeartbeat(context.get(), request, &reply));
}

absl::Status ServerNode::CheckJob(uint64_t job) const {
  if (job == job_id_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", absl::Hex(job), " is not this server's (", absl::Hex(job_id_), ")"));
}

absl::StatusOr<std::shared_ptr<ServerNode::Model>> ServerNode::Find(uint64_t job) {
  MutexLock lock(mutex_);
  if (!joined_ || model_ == nullptr) return absl::UnavailableError("the server has no model yet");
  RETURN_IF_ERROR(CheckJob(job));
  return model_;
}

absl::StatusOr<std::shared_ptr<ServerNode::Model>> ServerNode::MakeModel(
    const v1::ConfigureRequest& request) {
  Shard::Options options;
  options.job = job_;
  options.schema = request.schema();
  options.length = request.length();
  options.block_elements = request.block_elements();
  options.server = options_.index;
  options.cut_every = request.cut_every();
  // The shard hands its cuts to a writer that must know the shard's layout first.
  ASSIGN_OR_RETURN(const BlockLayout layout,
                   BlockLayout::FromWire(request.schema().total(), job_.servers().count(),
                                         request.block_elements()));
  ASSIGN_OR_RETURN(std::vector<std::string> slot_names, Shard::SlotNames(job_));
  auto model = std::make_shared<Model>();
  model->generation = request.generation();
  model->configuration = request.SerializeAsString();
  model->cuts = std::make_unique<CutWriter>(
      CutWriter::Options{job_id_, options_.index, layout, std::move(slot_names), request.run_dir()},
      [this, generation = model->generation](uint64_t cut,
                                             const absl::StatusOr<v1::SavedShard>& saved) {
        ReportCut(generation, cut, saved);
      });
  options.memory = MakeVersionMemory(layout, options_.index);
  ASSIGN_OR_RETURN(model->shard, Shard::Make(options, model->cuts.get()));
  if (!request.checkpoint().empty()) {
    RETURN_IF_ERROR(LoadShard(request.checkpoint(), job_, *model->shard));
  }
  return model;
}

absl::StatusOr<bool> ServerNode::Configured(const v1::ConfigureRequest& request) {
  MutexLock lock(mutex_);
  if (!joined_) return absl::UnavailableError("the server is still registering");
  RETURN_IF_ERROR(CheckJob(request.job()));
  if (model_ == nullptr || model_->generation < request.generation()) return false;
  if (model_->configuration == request.SerializeAsString()) return true;
  return absl::FailedPreconditionError(
      absl::StrCat("the server holds a model of generation ", model_->generation,
                   " in another configuration; this one is of generation ", request.generation()));
}

void ServerNode::Retire(uint64_t generation) {
  parameter_service_.Serve(job_id_, generation, nullptr);
  std::shared_ptr<Model> before;
  {
    MutexLock lock(mutex_);
    before.swap(model_);
  }
}

absl::Status ServerNode::Configure(const v1::ConfigureRequest& request) {
  MutexLock configuring(configuring_);
  ASSIGN_OR_RETURN(const bool here, Configured(request));
  if (here) return absl::OkStatus();
  // First: the memory of both would be twice that of the model, and two would write the same files.
  Retire(request.generation());
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model, MakeModel(request));
  const BlockStore& store = model->shard->store();
  spdlog::info("holds {} of {} blocks, {} values{}", store.layout().BlocksOn(options_.index),
               store.layout().blocks(), store.layout().ElementsOn(options_.index),
               request.checkpoint().empty() ? "" : ", from " + request.checkpoint());
  parameter_service_.Serve(job_id_, request.generation(), model->shard);
  MutexLock lock(mutex_);
  model_ = model;
  return absl::OkStatus();
}

void ServerNode::ReportCut(uint64_t generation, uint64_t cut,
                           const absl::StatusOr<v1::SavedShard>& saved) {
  v1::ShardSavedRequest request;
  request.set_job(job_id_);
  request.set_generation(generation);
  request.set_index(options_.index);
  request.set_clock(cut);
  if (saved.ok()) {
    *request.mutable_shard() = *saved;
  } else {
    request.set_error(std::string(saved.status().message()));
    spdlog::error("cut at clock {}: {}", cut, request.error());
  }
  v1::ShardSavedReply reply;
  auto context = Within(kCallAtMost);
  const grpc::Status status = coordinator_->ShardSaved(context.get(), request, &reply);
  if (!status.ok()) spdlog::warn("reporting the cut at clock {}: {}", cut, status.error_message());
}

void ServerNode::Await(ServerQueue* queue) {
  parameter_service_.Await(queue);
  ServeUnary<v1::ConfigureRequest, v1::ConfigureReply>(
      queue, this, &ServerNode::RequestConfigure,
      [this, queue](const v1::ConfigureRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] {
          const absl::Status status = Configure(request);
          if (!status.ok()) spdlog::error("configuring: {}", std::string(status.message()));
          done(Reply<v1::ConfigureReply>(status));
        });
      });
  ServeUnary<v1::SetLiveRequest, v1::SetLiveReply>(
      queue, this, &ServerNode::RequestSetLive,
      [this](const v1::SetLiveRequest& request, auto done) {
        done(Reply<v1::SetLiveReply>(SetLive(request)));
      });
  ServeUnary<v1::SaveRequest, v1::SavedShard>(
      queue, this, &ServerNode::RequestSave,
      [this, queue](const v1::SaveRequest& request, auto done) {
        queue->Later([this, request, done = std::move(done)] { done(Save(request)); });
      });
  ServeUnary<v1::ShutdownRequest, v1::ShutdownReply>(
      queue, this, &ServerNode::RequestShutdown,
      [this](const v1::ShutdownRequest& request, auto done) {
        done(Reply<v1::ShutdownReply>(Shutdown(request)));
      });
}

absl::Status ServerNode::SetLive(const v1::SetLiveRequest& request) {
  ASSIGN_OR_RETURN(const auto model, Find(request.job()));
  model->shard->SetLive(request.rank(), request.live());
  return absl::OkStatus();
}

absl::StatusOr<v1::SavedShard> ServerNode::Save(const v1::SaveRequest& request) {
  ASSIGN_OR_RETURN(const auto model, Find(request.job()));
  if (model->generation != request.generation()) {
    return absl::FailedPreconditionError(absl::StrCat("generation ", request.generation(),
                                                      " is to be saved; this server holds ",
                                                      "generation ", model->generation));
  }
  ASSIGN_OR_RETURN(auto held, model->shard->Hold(request.clock()));
  // Without blocks it has no part in a checkpoint.
  if (held.empty()) return v1::SavedShard();
  return model->cuts->WriteLast(request.clock(), std::move(held));
}

absl::Status ServerNode::Shutdown(const v1::ShutdownRequest& request) {
  {
    MutexLock lock(mutex_);
    if (!joined_) return absl::UnavailableError("the server is still registering");
    RETURN_IF_ERROR(CheckJob(request.job()));
    over_ = true;
  }
  changed_.NotifyAll();
  return absl::OkStatus();
}

}  // namespace leeway
