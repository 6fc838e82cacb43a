// The folder of a run's files, on this machine or in an object store.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/open_folder.h"
#include "config/job.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The names of the files in a run folder, which also contains the folders checkpoints/ and logs/.
inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
// In an object store this folder of segments (common/storage/segments.h) replaces kMetricsFile.
inline constexpr char kMetricsFolder[] = "metrics";
inline constexpr char kModelFile[] = "model.safetensors";
// The moving average of the model's weights, if the job keeps one.
inline constexpr char kAverageModelFile[] = "model-average.safetensors";
inline constexpr char kSummaryFile[] = "summary.json";

// Files that only the launcher writes. These are in the run's folder on this machine.
inline constexpr char kLauncherLog[] = "launcher.log";
// Holds the coordinator's HOST:PORT while the job runs.
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kLogsFolder[] = "logs";
// The names of the report's files, which are in the run folder.
inline constexpr char kCurvesFile[] = "curves.svg";
inline constexpr char kReportFile[] = "report.html";

// Where a run keeps its files.
struct RunPlace {
  // The place of the files that last: the job, metrics, checkpoints, the model and the report. An
  // absolute path, or s3://BUCKET/PREFIX.
  std::string location;
  // The folder for the files of this machine: logs and, while the job runs, its token and the
  // coordinator's address. An absolute path. If `location` is a folder, it is the same folder.
  std::string here;

  bool in_store() const { return location != here; }
};
// Returns the place of the run in `run_dir`, which is a folder or s3://BUCKET/PREFIX. For s3://,
// `local_dir` is the run's folder on this machine; if it is empty, that folder is
// runs/s3/BUCKET/PREFIX. Returns INVALID_ARGUMENT if `run_dir` is not a valid location, or if it is
// a folder and `local_dir` is not empty.
absl::StatusOr<RunPlace> PlaceOfRun(const std::string& run_dir, const std::string& local_dir = "");

// If the place is in an object store, checks that the store accepts writes. Returns
// INVALID_ARGUMENT, which says what to do, if a setting is wrong. Other errors may be temporary.
absl::Status CheckStore(const RunPlace& place);
// Returns the name under which a run in `location` keeps its metrics: metrics.jsonl, or in an
// object store the name of the folder of segments.
const char* MetricsName(const std::string& location);

// The folder for runs without --run-dir, below the current folder. Only the user can read such a
// run.
inline constexpr char kRunsFolder[] = "runs";
// Returns runs/NAME-20261120-104500, in local time. If that exists, appends -2, -3 and so on.
std::string DefaultRunFolder(const std::string& name, std::time_t now);

// Returns whether a launcher is using the run folder now. `here` is RunPlace::here. Also returns
// true if the folder cannot be opened or its file system does not support locks.
bool HasLauncher(const std::string& here);

// A run folder that one launcher owns. While this object lives, no other launcher can use the
// folder. For a run in an object store this excludes only launchers with the same folder on this
// machine.
class RunFolder {
 public:
  struct Checkpoint {
    uint64_t clock = 0;
    uint64_t bytes = 0;
    // Relative to the run folder.
    std::string path;
  };

  // Makes the folders. Returns ALREADY_EXISTS if the run folder is not empty, with one exception.
  // If a launcher on this machine started the run, and the run left no checkpoint, the folder can
  // be used again. `Replaced()` then lists the files to replace. Returns ABORTED if another
  // launcher is running the job.
  static absl::StatusOr<RunFolder> Create(const RunPlace& place);
  // Opens the folder of a run that will continue or be finished. Returns NOT_FOUND if there is no
  // run in it, and ABORTED if another launcher is running the job.
  static absl::StatusOr<RunFolder> Open(const RunPlace& place);
  // Returns NOT_FOUND unless a run was started there. A job file alone is not enough.
  static absl::Status CheckIsOne(const std::string& location);
  // Returns NOT_FOUND if there is no run in `location`.
  static absl::Status CheckHoldsRun(const std::string& location);

  const RunPlace& place() const { return place_; }
  const std::string& location() const { return place_.location; }
  // Return the path of a file that lasts, and of a file on this machine (RunPlace).
  std::string Lasting(const std::string& name) const { return place_.location + "/" + name; }
  std::string Here(const std::string& name) const { return place_.here + "/" + name; }

  // Call this function for a run without a checkpoint. If such a run has exported a model, it has
  // lost a checkpoint, and the function returns DATA_LOSS.
  absl::Status CheckNoResult() const;
  // For the folder of a run that left no checkpoint: returns the names of the files that the next
  // run replaces. All other files in the folder stay. Without a launcher's log, returns no names: a
  // person has started the run by hand, and the run may continue to use its files.
  absl::StatusOr<std::vector<std::string>> Replaced() const;
  absl::Status Remove(const std::vector<std::string>& names) const;
  // Returns whether a launcher on this machine has run the job earlier.
  bool WasHere() const;
  // Returns NOT_FOUND if the run folder was removed or moved. Always OK for a run in an object
  // store.
  absl::Status CheckThere() const;

 private:
  RunFolder(RunPlace place, OpenFolder folder)
      : place_(std::move(place)), folder_(std::move(folder)) {}
  // Makes the missing folders, and locks the folder on this machine.
  static absl::StatusOr<RunFolder> Take(const RunPlace& place);

  RunPlace place_;
  // The folder on this machine, which is locked.
  OpenFolder folder_;
};

// Does the same as LoadPlacedJob, but also accepts s3://BUCKET/KEY.
absl::StatusOr<PlacedJob> LoadStoredJob(const std::string& location, const JobOverrides& overrides);

// Returns the job of the checkpoint `newest` in a form that can be compared with `next`, the job
// that continues from the checkpoint. A codec that was chosen for `auto` is `auto` again, and an
// update rule that a worker supplied is removed.
v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next);

// Returns the complete checkpoints of a run, ordered by clock.
std::vector<RunFolder::Checkpoint> ListCheckpoints(const std::string& run_dir);

}  // namespace leeway
