#include "server/service/shard_table.h"

#include <chrono>
#include <string>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/status.h"
#include "server/core/generations.h"

namespace leeway {

void ShardTable::Serve(Holdings holdings) {
  std::vector<std::shared_ptr<Shard>> before;
  {
    MutexLock lock(mutex_);
    before = std::move(holdings_.shards);
    holdings_ = std::move(holdings);
    for (const auto& kept : holdings_.shards) std::erase(before, kept);
  }
  for (const auto& shard : before) {
    if (shard != nullptr) shard->Close();
  }
}

void ShardTable::Serve(uint64_t job, uint64_t generation, std::shared_ptr<Shard> shard) {
  auto memory = shard->memory();
  Serve({job, generation, {std::move(shard)}, {}, std::move(memory)});
}

std::vector<std::shared_ptr<Shard>> ShardTable::shards() const {
  std::vector<std::shared_ptr<Shard>> here;
  MutexLock lock(mutex_);
  for (const auto& shard : holdings_.shards) {
    if (shard != nullptr) here.push_back(shard);
  }
  return here;
}

std::shared_ptr<SharedArena> ShardTable::memory() const {
  MutexLock lock(mutex_);
  return holdings_.memory;
}

absl::Status ShardTable::LeaseIsOver() {
  return absl::UnavailableError(
      "this server's lease is over, because it has not heard from the coordinator; other "
      "servers may own its blocks by now; send the request again");
}

absl::Status ShardTable::CheckHeldLocked(uint64_t job, uint64_t generation) const {
  if (holdings_.job == 0) {
    return absl::UnavailableError(
        "the server waits until the coordinator tells it which model to hold");
  }
  if (job != holdings_.job) {
    return absl::FailedPreconditionError(absl::StrCat("header.job: ", absl::Hex(job),
                                                      " is not the job that this server holds (",
                                                      absl::Hex(holdings_.job), ")"));
  }
  if (generation < holdings_.generation) {
    return absl::FailedPreconditionError(
        absl::StrCat("header.generation: is ", generation,
                     ", but the job has gone back to a checkpoint and is now at generation ",
                     holdings_.generation, ": register again"));
  }
  if (generation == holdings_.generation) return absl::OkStatus();
  if (generation - holdings_.generation > kGenerationsAhead) {
    return absl::InvalidArgumentError(absl::StrCat("header.generation: ", generation,
                                                   " is impossible: the job is at generation ",
                                                   holdings_.generation));
  }
  return absl::UnavailableError(
      absl::StrCat("the server is at generation ", holdings_.generation,
                   " and waits for the coordinator to bring it to generation ", generation));
}

absl::Status ShardTable::CheckHeld(uint64_t job, uint64_t generation) const {
  MutexLock lock(mutex_);
  return CheckHeldLocked(job, generation);
}

absl::Status ShardTable::CheckShardNumber(const v1::AttachRequest& request) const {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckHeldLocked(request.job(), request.generation()));
  const size_t shards = holdings_.shards.size();
  if (!request.has_shard() || shards == 0 || request.shard() < shards) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "shard: ", request.shard(), " does not exist; the job has ", Counted(shards, "shard")));
}

absl::StatusOr<std::shared_ptr<Shard>> ShardTable::Find(const v1::ExchangeHeader& header) const {
  if (!leased()) return LeaseIsOver();
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckHeldLocked(header.job(), header.generation()));
  const size_t shards = holdings_.shards.size();
  const size_t number = shards == 0 ? 0 : header.block() % shards;
  if (shards > 0 && holdings_.shards[number] != nullptr) return holdings_.shards[number];
  // The model has no such block. Any shard that is here returns the right error.
  for (const auto& shard : holdings_.shards) {
    if (shard != nullptr && header.block() >= shard->store().layout().blocks()) return shard;
  }
  return absl::UnavailableError(
      absl::StrCat("block ", header.block(), ": this server does not own shard ", number,
                   " (yet, or any more); the coordinator knows which server does"));
}

absl::StatusOr<std::shared_ptr<ReplicaStore>> ShardTable::FindReplica(
    const v1::ExchangeHeader& header) const {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckHeldLocked(header.job(), header.generation()));
  const auto& replicas = holdings_.replicas;
  auto store = replicas.empty() ? nullptr : replicas[header.block() % replicas.size()];
  if (store != nullptr) return store;
  return absl::FailedPreconditionError(absl::StrCat(
      "block ", header.block(), ": this server does not have the replica of this block"));
}

absl::StatusOr<std::shared_ptr<Shard>> ShardTable::Admit(const v1::ExchangeHeader& header,
                                                         Want want, Admitted* last) {
  std::shared_ptr<Shard> shard;
  if (last != nullptr && leased()) {
    shard = last->shard.lock();
    const bool alike = shard != nullptr && !shard->closed() && header.job() == last->job &&
                       header.generation() == last->generation &&
                       Sender{header.rank(), header.incarnation()} == last->sender &&
                       shard->store().Has(header.block());
    if (!alike) shard = nullptr;
  }
  if (shard == nullptr) {
    ASSIGN_OR_RETURN(shard, LookUp(header, want, last));
  }
  if (want == Want::kHold && budget_.over()) RETURN_IF_ERROR(AdmitOverBudget(*shard, header));
  return shard;
}

absl::StatusOr<std::shared_ptr<Shard>> ShardTable::LookUp(const v1::ExchangeHeader& header,
                                                          Want want, Admitted* last) {
  ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard, Find(header));
  const bool anybody = want == Want::kLatest;
  if (anybody && last == nullptr) return shard;
  const absl::Status believed = lives_.Check(header.rank(), header.incarnation());
  if (!believed.ok() && anybody) return shard;
  RETURN_IF_ERROR(believed);
  // The shard refuses a rank that the job does not have.
  if (last != nullptr && shard->IsRank(header.rank())) {
    const Sender sender{header.rank(), header.incarnation()};
    *last = {shard, header.job(), header.generation(), sender};
  }
  return shard;
}

absl::Status ShardTable::AdmitOverBudget(Shard& shard, const v1::ExchangeHeader& header) {
  absl::Status status = shard.AdmitBeyondBudget(header);
  if (status.ok()) return status;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (budget_.CountRefused(std::chrono::duration_cast<std::chrono::seconds>(now).count())) {
    const ByteBudget::Load load = budget_.load();
    spdlog::warn(
        "{}; {} bytes held, {} requests refused so far. The job continues, but slower than "
        "possible: a larger limits.held_bytes or more servers would help",
        std::string(status.message()), load.held_bytes, load.refused_contributions);
  }
  return status;
}

}  // namespace leeway
