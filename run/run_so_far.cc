#include "run/run_so_far.h"

#include <iostream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "config/job.h"
#include "config/length.h"
#include "run/history.h"
#include "run/outcome.h"
#include "server/checkpoint/checkpoint_dir.h"
#include "server/checkpoint/coordinator_record.h"
#include "server/checkpoint/manifest.h"

namespace leeway {
namespace {

constexpr uint64_t kJobBytesMax = 16 << 20;

// Returns the lines that are only in `before` or only in `after`, which are the settings that a
// person changed between two starts.
std::string Changes(const std::string& before, const std::string& after) {
  const std::vector<std::string> old_lines = absl::StrSplit(before, '\n');
  const std::vector<std::string> new_lines = absl::StrSplit(after, '\n');
  const std::set<std::string> old_set(old_lines.begin(), old_lines.end());
  const std::set<std::string> new_set(new_lines.begin(), new_lines.end());
  std::string changes;
  for (const std::string& line : old_lines) {
    if (!new_set.contains(line)) absl::StrAppend(&changes, "  - ", line, "\n");
  }
  for (const std::string& line : new_lines) {
    if (!old_set.contains(line)) absl::StrAppend(&changes, "  + ", line, "\n");
  }
  return changes;
}

absl::Status CheckStop(const v1::CheckpointManifest& newest, const v1::TrainingJob& job,
                       uint64_t steps_per_epoch) {
  // If the checkpoint counts leased batches, its clock does not show how much of the job is done.
  if (newest.has_data()) return absl::OkStatus();
  StartPoint start;
  if (newest.has_length()) {
    start = GoOnFrom(newest.length(), newest.clock(), job, steps_per_epoch);
  }
  return CheckStopAhead(newest.job().stop(), job, ComputeLength(job, steps_per_epoch, start),
                        newest.clock());
}

// Warns that a launcher on another machine may be running the job, because an object store has no
// lock against that.
void WarnOfOthers(const RunFolder& run, const v1::CoordinatorRecord& record) {
  if (!run.place().in_store() || run.WasHere() || record.outcome() != v1::JOB_STARTING) return;
  std::cerr << "leeway: the run in " << run.location()
            << " was begun on another machine or by hand, and has not ended normally. If its "
               "processes are still running, stop them and start this command again: otherwise "
               "each job would remove the other's checkpoints\n";
}

}  // namespace

absl::StatusOr<RunSoFar> ReadRunSoFar(const RunFolder& run, const v1::TrainingJob& job,
                                      uint64_t steps_per_epoch) {
  RunSoFar so_far;
  ASSIGN_OR_RETURN(std::string before, ReadStored(run.Lasting(kJobFile), kJobBytesMax));
  // Server 0 also reads the record. Read it here, too, so that an error appears before any process
  // starts.
  ASSIGN_OR_RETURN(const auto record, ReadCoordinatorRecord(run.location()));
  if (record.has_value()) WarnOfOthers(run, *record);
  ASSIGN_OR_RETURN(const CheckpointSearch search, FindNewestCheckpoint(run.location()));
  for (const std::string& warning : search.warnings) std::cerr << "leeway: " << warning << "\n";
  so_far.goes_on = search.newest.has_value();
  // The checkpoint has the job that trained. job.yaml may come from a later start that was stopped
  // before it trained.
  if (so_far.goes_on) before = ToYaml(JobSoFar(search.newest->manifest, job));
  const std::string after = ToYaml(job);
  if (before != after) {
    std::cout << "Settings that differ from the run so far:\n" << Changes(before, after);
  }
  if (so_far.goes_on) {
    RETURN_IF_ERROR(Annotate(CheckGoesOn(search.newest->manifest, job), "--resume"));
    RETURN_IF_ERROR(Annotate(CheckStop(search.newest->manifest, job, steps_per_epoch), "--resume"));
  }
  RETURN_IF_ERROR(Annotate(CheckNothingLost(run.location(), search), "--resume"));
  if (!so_far.goes_on) RETURN_IF_ERROR(Annotate(run.CheckNoResult(), "--resume"));
  if (!so_far.goes_on) std::cout << "No complete checkpoint yet: the run begins anew.\n";
  const RunHistory history = ReadHistory(run.Lasting(kMetricsFile));
  if (const auto summary = ReadSummary(run.location()); summary.ok()) {
    so_far.worker_restarts = summary->by_rank.restarts;
    so_far.server_restarts = summary->server_restarts;
  }
  so_far.finished = so_far.goes_on && history.state == "finished" && before == after;
  if (so_far.finished) so_far.ended_early = history.message;
  return so_far;
}

}  // namespace leeway
