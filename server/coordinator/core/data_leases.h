// With leased data, decides which worker has which batches (lease_book.h), and which batches each
// cut contains. Owns the book. The core must report here which batches workers have done, which
// workers are lost, and which cuts are durable. Without data.assignment: leased, this class does
// nothing.
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

  // Checks that the worker's number of batches in a pass is possible, and that the other workers
  // have reported the same number.
  absl::Status Check(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  void Take(const v1::RegisterWorkerRequest& request);

  // Opens the book once the job's length is known. `cut` is the clock of the newest cut, for
  // messages. Returns FAILED_PRECONDITION if no worker has reported the number of batches in a
  // pass, or if the checkpoint has another number. Also returns the errors of LeaseBook::Restore.
  absl::Status Open(const v1::JobLength& length, uint64_t cut);
  // Restores the state of the newest durable cut.
  absl::Status Restore(uint64_t cut);
  bool open() const { return book_.has_value(); }
  // Returns true if the job's length is counted in batches.
  bool by_batches() const { return book_ && !book_->endless(); }
  bool over() const { return book_->over(); }

  // Records the batches that a worker has done, and leases more batches to it. `sharers` is the
  // number of running workers. `cuts` is true if the job takes cuts. The book must be open.
  v1::LeaseDataReply Lease(const v1::LeaseDataRequest& request, uint32_t sharers, bool cuts);
  // Frees the rank's batches, because the rank is lost or has left.
  void TakeBack(uint32_t rank);

  // Adds to the manifest which batches the cut at `clock`, made of these shards' parts, contains.
  // The caller must call Written() for the manifest later.
  void AddTo(uint64_t clock, const std::vector<v1::SavedShard>& shards,
             v1::CheckpointManifest& manifest);
  void Written(uint64_t clock, bool durable);

  void Fill(v1::JobStatus& status) const;
  // Returns a message such as "the last 3 batches are with workers 1, 2"; empty if other batches
  // are left to lease.
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
  // The data's progress in cuts whose manifests are being written, by clock.
  std::map<uint64_t, DataCut> cuts_;
  // The data's progress in the newest durable cut.
  std::optional<v1::DataProgress> newest_;
};

}  // namespace leeway
