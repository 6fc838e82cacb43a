#include "library/registrar.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/address.h"
#include "common/command_line/environment_place.h"
#include "common/counted.h"
#include "common/identity.h"
#include "common/log.h"
#include "common/rpc/channel.h"
#include "common/status.h"
#include "config/brought_update.h"
#include "config/external.h"
#include "config/length.h"
#include "config/topology.h"
#include "library/process.h"
#include "library/schema.h"

namespace leeway {
namespace {

absl::Status CompleteFromEnvironment(JobOptions& options) {
  if (options.rank && !options.coordinator.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const EnvironmentPlace place, PlaceFromEnvironment(PlaceRole::kWorker));
  if (!options.rank) options.rank = place.rank;
  if (options.coordinator.empty()) options.coordinator = place.coordinator;
  if (!options.coordinator.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "no coordinator: set LEEWAY_COORDINATOR=HOST:PORT, the address of server 0; `leeway "
      "train JOB -- COMMAND` sets it");
}

// Makes a refusal final, because the coordinator would refuse the same registration again. For
// example, this worker's model may differ from that of the other workers.
absl::Status Refusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) ? absl::InvalidArgumentError(status.message()) : status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Registrar>> Registrar::Make(JobOptions options) {
  RETURN_IF_ERROR(PrepareProcess());
  RETURN_IF_ERROR(CompleteFromEnvironment(options));
  RETURN_IF_ERROR(Annotate(CheckAddressToReach(options.coordinator), "coordinator"));
  ASSIGN_OR_RETURN(v1::ModelSchema schema, SchemaOf(options.tensors));
  std::optional<v1::Update> update;
  if (!options.update.empty()) {
    ASSIGN_OR_RETURN(update, ParseUpdate(options.update));
  }
  if (!options.tensors.empty() && options.initial.size() != schema.total()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the initial weights are ", Counted(options.initial.size(), "value"),
                     ", but the tensors have ", Counted(schema.total(), "element")));
  }
  auto registrar = std::unique_ptr<Registrar>(new Registrar(std::move(options), RandomIdentity()));
  registrar->schema_ = std::move(schema);
  registrar->update_ = std::move(update);
  registrar->channel_ = MakeChannel(registrar->options_.coordinator);
  return registrar;
}

CoordinatorSession::Options Registrar::Process() {
  return SessionOptions(options_.coordinator, nonce_, breaker_);
}

absl::Status Registrar::FetchJob() {
  CoordinatorSession session(channel_, Process());
  ASSIGN_OR_RETURN(const v1::RegisterWorkerReply offer,
                   session.FetchJob(options_.rank, FromSeconds(options_.start_seconds)));
  start_limit_ = offer.job().limits().start_seconds();
  v1::RegisterWorkerRequest request;
  if (options_.rank) request.set_rank(*options_.rank);
  request.set_device("cpu");
  if (IsExternal(offer.job())) {
    if (options_.tensors.empty()) {
      return absl::InvalidArgumentError(
          "the job's model is external: the worker must name its tensors");
    }
    *request.mutable_schema() = schema_;
    request.set_steps_per_epoch(ExternalStepsPerEpoch(offer.job()));
    request.set_batches_per_epoch(ExternalBatchesPerEpoch(offer.job()));
    if (update_) *request.mutable_update() = *update_;
  } else if (offer.job().data().assignment() == v1::ASSIGNMENT_LEASED) {
    return absl::InvalidArgumentError(
        "data.assignment: leased: only Leeway's own workers can lease batches of files; to lease "
        "batches of the program's own data, set data.type: external");
  }
  if (WorkersHoldBlocks(offer.job())) RETURN_IF_ERROR(HoldBlocks());
  request_ = std::move(request);
  return absl::OkStatus();
}

absl::Status Registrar::HoldBlocks() {
  ASSIGN_OR_RETURN(std::shared_ptr<BlockHolder> holder,
                   StartHolder(options_.hold_blocks, {options_.rank, options_.coordinator,
                                                      FromSeconds(options_.start_seconds)}));
  MutexLock lock(mutex_);
  holder_ = std::move(holder);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Registration>> Registrar::RegisterOnce() {
  auto registration = std::make_unique<Registration>(channel_, Process());
  ASSIGN_OR_RETURN(registration->reply,
                   registration->session.Register(*request_, FromSeconds(start_limit_)));
  request_->set_rank(registration->reply.rank());
  SetLogRole(absl::StrCat("worker ", registration->reply.rank()));
  if (!options_.tensors.empty()) {
    RETURN_IF_ERROR(CheckSame(schema_, registration->reply.schema()));
  }
  return registration;
}

absl::Status Registrar::Open(Registration& registration, FloatBuffer& weights) {
  if (weights.size() == 0) weights = FloatBuffer(registration.reply.schema().total());
  registration.participant =
      std::make_unique<Participant>(registration.reply, registration.session);
  Participant& participant = *registration.participant;
  RETURN_IF_ERROR(participant.Open());
  registration.loop = std::make_unique<ClockLoop>(participant);
  registration.carrier = MakeCarrier(participant, Holder().get());
  ASSIGN_OR_RETURN(registration.exchange, MakeExchange({.job = registration.reply.job(),
                                                        .schema = registration.reply.schema(),
                                                        .length = registration.reply.length(),
                                                        .carrier = *registration.carrier,
                                                        .listener = *registration.loop,
                                                        .weights = weights.span(),
                                                        .program = true}));
  {
    MutexLock lock(mutex_);
    newest_ = &participant;
    if (breaker_.broken()) participant.client().Cancel();
  }
  return registration.loop->Attach(*registration.exchange, [this] { return InitialWeights(); });
}

absl::StatusOr<FloatBuffer> Registrar::InitialWeights() const {
  if (options_.initial.empty()) {
    return absl::InvalidArgumentError(
        "the servers have no weights yet, and this worker has no initial weights to send");
  }
  FloatBuffer initial(options_.initial.size());
  std::copy(options_.initial.begin(), options_.initial.end(), initial.data());
  return initial;
}

std::string Registrar::Waiting() const {
  MutexLock lock(mutex_);
  return newest_ != nullptr ? newest_->Waiting() : "the other workers to join";
}

void Registrar::Cancel() {
  breaker_.Break();
  MutexLock lock(mutex_);
  if (holder_ != nullptr) holder_->Leave();
  if (newest_ != nullptr) newest_->client().Cancel();
}

std::shared_ptr<BlockHolder> Registrar::Holder() const {
  MutexLock lock(mutex_);
  return holder_;
}

void Registrar::AwaitEnd() {
  if (const auto holder = Holder()) holder->AwaitEnd();
}

void Registrar::Forget() {
  MutexLock lock(mutex_);
  newest_ = nullptr;
}

std::unique_ptr<Registration> Registrar::JobIsOver(FloatBuffer& weights) {
  auto registration = std::make_unique<Registration>(channel_, Process());
  *registration->reply.mutable_schema() = schema_;
  if (weights.size() == 0) weights = FloatBuffer(schema_.total());
  return registration;
}

absl::StatusOr<std::unique_ptr<Registration>> Registrar::Register(FloatBuffer& weights) {
  const absl::Status fetched = request_ ? absl::OkStatus() : FetchJob();
  if (absl::IsAlreadyExists(fetched)) return JobIsOver(weights);
  RETURN_IF_ERROR(Refusal(fetched));
  while (true) {
    auto registered = RegisterOnce();
    if (absl::IsAlreadyExists(registered.status())) return JobIsOver(weights);
    RETURN_IF_ERROR(Refusal(registered.status()));
    std::unique_ptr<Registration> registration = *std::move(registered);
    const v1::RegisterWorkerReply& reply = registration->reply;
    const bool same = SameLife(before_, reply);
    before_ = reply;
    if (reply.has_left_at()) {
      spdlog::info("an earlier life of this worker has done all its work");
      if (weights.size() == 0) weights = FloatBuffer(reply.schema().total());
      return registration;
    }
    const absl::Status opened = Open(*registration, weights);
    if (opened.ok()) return registration;
    // The others have gone on without the worker, or the job has gone back to a checkpoint, so the
    // worker registers again. If the coordinator refuses the same life twice, there is another
    // reason.
    const bool again =
        absl::IsAlreadyExists(opened) || (absl::IsFailedPrecondition(opened) && !same);
    Forget();
    if (!again) return opened;
    spdlog::warn("{}", std::string(opened.message()));
  }
}

}  // namespace leeway
