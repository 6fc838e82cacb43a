// Leased data: which batches are whose (lease_book.h), and what each cut has of them, where
// data.assignment asks for it. Owns the book; must be told what workers have done, who is lost, and
// which cuts are durable. Where data is not leased it does nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/commands.h"
#include "server/coordinator/core/job_facts.h"
#include "server/coordinator/core/lease_book.h"

namespace leeway {

// Pure; not thread-safe.
class DataLeases {
 public:
  DataLeases(const JobFacts& facts, Commands& commands) : facts_(facts), commands_(commands) {}

  // A worker's number of batches in a pass can be, and is that of the others.
  absl::Status Check(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  void Take(const v1::RegisterWorkerRequest& request);

  // Once the job's length is known; `cut`: the clock of the newest one, for messages.
  // FAILED_PRECONDITION where nobody says how many batches make a pass, or the checkpoint says
  // another number; else LeaseBook::Restore's.
  absl::Status Open(const v1::JobLength& length, uint64_t cut);
  // As the newest durable cut says.
  absl::Status Restore(uint64_t cut);
  bool open() const { return book_.has_value(); }
  // The job's length is counted in batches.
  bool by_batches() const { return book_ && !book_->endless(); }
  bool over() const { return book_->over(); }

  // What a worker has done is done, and it gets more. `sharers`: workers that run. `cuts`: there
  // are any. Open.
  v1::LeaseDataReply Lease(const v1::LeaseDataRequest& request, uint32_t sharers, bool cuts);
  // The rank is lost, or has left.
  void TakeBack(uint32_t rank);

  // What the cut of these shards has, for its manifest, which is then durable or never will be.
  void AddTo(uint64_t clock, const std::vector<v1::SavedShard>& shards,
             v1::CheckpointManifest& manifest);
  void Written(uint64_t clock, bool durable);

  void Fill(v1::JobStatus& status) const;
  // "the last 3 batches are with workers 1, 2"; empty if there are more.
  std::string LastBatchesMessage() const;

 private:
  struct DataCut {
    std::vector<uint64_t> clocks;
    v1::DataProgress progress;
  };
  void TakeDone(const v1::LeaseDataRequest& request, bool cuts);

  const JobFacts& facts_;
  Commands& commands_;
  std::optional<LeaseBook> book_;
  uint64_t batches_per_epoch_ = 0;
  // By clock: what cuts whose manifest is in writing have of the data; and what the newest durable
  // one has.
  std::map<uint64_t, DataCut> cuts_;
  std::optional<v1::DataProgress> newest_;
};

}  // namespace leeway
