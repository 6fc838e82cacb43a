// The job as it was configured, what is known of its run so far, and what follows from these alone.
// Constant, but for what `auto` compression stands for, and for the rule that the first worker of
// an external job brings. Owns the options and the workers' measured links; must be told of each
// link that a worker has measured before the codec is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/clock.h"
#include "leeway/v1/coordinator.pb.h"
#include "server/coordinator/core/auto_choice.h"
#include "server/coordinator/core/coordinator_options.h"

namespace leeway {

// Pure; not thread-safe.
class JobFacts {
 public:
  explicit JobFacts(CoordinatorOptions options);

  const CoordinatorOptions& options() const { return options_; }
  const v1::TrainingJob& job() const { return options_.job; }
  bool sync() const { return job().consistency().mode() == v1::CONSISTENCY_MODE_SYNC; }
  // Sync, and this coordinator says whose contributions a clock is made of.
  bool commits_sets() const { return commits_sets_; }
  // Sync, and no clock is complete without everybody.
  bool lockstep() const { return sync() && !commits_sets_; }
  bool replicated() const { return job().servers().replicas() > 1; }
  // Data is leased to all workers.
  bool leased() const { return job().data().assignment() == v1::ASSIGNMENT_LEASED; }
  // Workers keep something between clocks that a checkpoint must hold: because of the exchange, or
  // as their program has said.
  bool keeps_state() const;
  bool programs_keep_state() const { return programs_keep_state_; }
  // INVALID_ARGUMENT: workers of this job are no programs of somebody else's.
  absl::Status CheckKeepsState(const v1::HeartbeatRequest& request) const;
  void ProgramsKeepState() { programs_keep_state_ = true; }
  uint32_t shards() const;
  // How many servers there are to be at the start: as the coordinator before was asked for.
  uint32_t start_servers() const;
  Duration lease() const { return FromSeconds(job().limits().lease_seconds()); }
  Duration start_limit() const { return FromSeconds(job().limits().start_seconds()); }
  // Steps of an epoch as the record of the coordinator before says; 0: its job had not begun.
  uint64_t StepsBefore() const;

  // FAILED_PRECONDITION: the message is for another job; the program is of another protocol.
  absl::Status CheckJob(uint64_t job) const;
  absl::Status CheckPeer(const v1::Build& build, const std::string& who) const;
  // INVALID_ARGUMENT: a run that goes on would end before it begins. `by_batches`: the job's length
  // is counted in batches.
  absl::Status CheckStop(const v1::JobLength& length, bool by_batches) const;

  // What a worker says of its own optimizer. Only a gradient exchange makes it the servers' rule;
  // in others it is the worker's business. INVALID_ARGUMENT: it is no rule, or is missing;
  // FAILED_PRECONDITION: the job's is another one.
  absl::Status CheckUpdate(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // Checked before. True: it is the job's rule from now on.
  bool TakeUpdate(const v1::RegisterWorkerRequest& request, const std::string& who);
  void TakeLink(uint32_t rank, double link) { links_.Take(rank, link); }
  // Once, before a server or a worker is told how to encode anything. Nothing where that is known.
  std::optional<AutoChoice> ChooseCodec(bool servers_on_one_host);

  // What the job's text leaves open and this run has settled, for those who have only the text: a
  // coordinator that comes later (CoordinatorRecord) and the servers (ConfigureRequest).
  template <typename Message>
  void FillSettled(Message& message) const {
    if (options_.auto_codec) *message.mutable_auto_codec() = *options_.auto_codec;
    if (!update_owner_.empty()) *message.mutable_update() = options_.job.update();
  }

 private:
  CoordinatorOptions options_;
  const bool commits_sets_;
  // The job has no `update`: a worker brings it.
  const bool brings_update_;
  // Who has brought it; empty: nobody yet.
  std::string update_owner_;
  bool programs_keep_state_;
  LinkBook links_;
};

}  // namespace leeway
