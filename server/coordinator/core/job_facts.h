// Holds the configured job and the facts about its run so far, and derives other facts from these
// alone. Everything is constant, except the codec that is chosen for `auto` compression and the
// update rule that the first worker of an external job supplies. Owns the options and the speeds of
// the workers' links. Until the codec is chosen, the core must report here each speed that a worker
// measures.
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
  // Returns true in sync mode with committed sets, in which this coordinator decides which
  // contributions make a clock.
  bool commits_sets() const { return commits_sets_; }
  // Returns true if the job is in sync mode and commits no sets. Every clock then needs all workers
  // to complete.
  bool lockstep() const { return sync() && !commits_sets_; }
  bool replicated() const { return job().servers().replicas() > 1; }
  // Returns true if batches of data are leased to workers.
  bool leased() const { return job().data().assignment() == v1::ASSIGNMENT_LEASED; }
  // Returns true if workers keep state between clocks that a checkpoint must hold. The exchange can
  // require this state, or the worker's program can report that it keeps state.
  bool keeps_state() const;
  bool programs_keep_state() const { return programs_keep_state_; }
  // Returns INVALID_ARGUMENT if the request says that the worker keeps state, but the job is not
  // external.
  absl::Status CheckKeepsState(const v1::HeartbeatRequest& request) const;
  void ProgramsKeepState() { programs_keep_state_ = true; }
  uint32_t shards() const;
  // Returns the number of servers expected at the start. If a previous coordinator was asked to
  // change the number of servers, this is the last number requested.
  uint32_t start_servers() const;
  Duration lease() const { return FromSeconds(job().limits().lease_seconds()); }
  Duration start_limit() const { return FromSeconds(job().limits().start_seconds()); }
  // Returns the steps of an epoch according to the previous coordinator's record; 0 if the job had
  // not begun then.
  uint64_t StepsBefore() const;

  // Return FAILED_PRECONDITION if the message is for another job, or if the program uses another
  // protocol.
  absl::Status CheckJob(uint64_t job) const;
  absl::Status CheckPeer(const v1::Build& build, const std::string& who) const;
  // Returns INVALID_ARGUMENT if a run that continues from a checkpoint would end before it begins.
  // `by_batches` is true if the job's length is counted in batches.
  absl::Status CheckStop(const v1::JobLength& length, bool by_batches) const;

  // Checks the optimizer that a worker reports. With a gradient exchange this optimizer is the
  // servers' update rule; otherwise it concerns only the worker. Returns INVALID_ARGUMENT if the
  // rule is invalid or missing, and FAILED_PRECONDITION if the job has another rule.
  absl::Status CheckUpdate(const v1::RegisterWorkerRequest& request, const std::string& who) const;
  // Takes the worker's rule, which CheckUpdate has accepted. Returns true if the rule becomes the
  // job's rule.
  bool TakeUpdate(const v1::RegisterWorkerRequest& request, const std::string& who);
  void TakeLink(uint32_t rank, double link) { links_.Take(rank, link); }
  // Chooses the codec of `auto`. Call this function once, before a server or a worker is told how
  // to encode anything. Returns nullopt if the codec is known already.
  std::optional<AutoChoice> ChooseCodec(bool servers_on_one_host);

  // Fills in the choices that this run has made because the job file leaves them open. A later
  // coordinator (CoordinatorRecord) and the servers (ConfigureRequest) need them, because they have
  // only the job file.
  template <typename Message>
  void FillSettled(Message& message) const {
    if (options_.auto_codec) *message.mutable_auto_codec() = *options_.auto_codec;
    if (!update_owner_.empty()) *message.mutable_update() = options_.job.update();
  }

 private:
  CoordinatorOptions options_;
  const bool commits_sets_;
  // True if the job has no `update`, so that a worker supplies the rule.
  const bool brings_update_;
  // The process that supplied the rule; empty until a process has.
  std::string update_owner_;
  bool programs_keep_state_;
  LinkBook links_;
};

}  // namespace leeway
