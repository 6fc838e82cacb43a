// The folder that a run leaves behind, on this machine or in an object store.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/files/open_folder.h"
#include "launcher/report/report_html.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"
#include "server/outcome/run_files.h"

namespace leeway {

// Of the launcher alone, besides those of run_files.h; on this machine.
inline constexpr char kLauncherLog[] = "launcher.log";
// host:port, while the job runs.
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kLogsFolder[] = "logs";
// In the run folder.
inline constexpr char kCurvesFile[] = "curves.svg";
inline constexpr char kReportFile[] = "report.html";

// Where a run keeps its files.
struct RunPlace {
  // What lasts: the job, metrics, checkpoints, the model and the report. An absolute path, or
  // s3://BUCKET/PREFIX.
  std::string location;
  // What is of this machine only: logs, and while the job runs its token and the coordinator's
  // address. An absolute path; where the location is a folder, that folder.
  std::string here;

  bool in_store() const { return location != here; }
};
// `run_dir`: a folder, or s3://BUCKET/PREFIX. `local_dir`: for the second, the folder on this
// machine; empty: runs/s3/BUCKET/PREFIX. INVALID_ARGUMENT: it is no location, or has no use for
// a `local_dir`.
absl::StatusOr<RunPlace> PlaceOfRun(const std::string& run_dir, const std::string& local_dir = "");

// Finds out now whether the object store of the place, if it has one, takes what is written:
// INVALID_ARGUMENT, saying what to do, where a setting is wrong; other errors may pass.
absl::Status CheckStore(const RunPlace& place);
// Of a run there: metrics.jsonl, or in an object store the folder of its segments.
const char* MetricsName(const std::string& location);

// Below the current folder. A run of its own choice there is its user's alone.
inline constexpr char kRunsFolder[] = "runs";
// runs/NAME-20261120-104500, in local time; with -2, -3 ... where that is there already.
std::string DefaultRunFolder(const std::string& name, std::time_t now);

// Whether a launcher has the run folder now. `here`: a RunPlace's. True where the system has no
// locks that tell.
bool HasLauncher(const std::string& here);

// A run folder owned by one launcher: while this object lives, no other launcher has it. Of a run
// in an object store that holds for launchers with the same folder on this machine.
class RunFolder {
 public:
  // Makes the folders. ALREADY_EXISTS if there is something in the run folder, except a run without
  // a checkpoint of a launcher that was here. Such a folder may be used again, and `Replaced()`
  // says what is then replaced.
  static absl::StatusOr<RunFolder> Create(const RunPlace& place);
  // Opens the folder of a run that will continue or be finished. NOT_FOUND if no run is there,
  // FAILED_PRECONDITION if it is running.
  static absl::StatusOr<RunFolder> Open(const RunPlace& place);
  // NOT_FOUND unless a run has been started there, not only a job file put there.
  static absl::Status CheckIsOne(const std::string& location);
  // NOT_FOUND if no run is there.
  static absl::Status CheckHoldsRun(const std::string& location);

  const RunPlace& place() const { return place_; }
  const std::string& location() const { return place_.location; }
  // Of a file that lasts, and of one of this machine.
  std::string Lasting(const std::string& name) const { return place_.location + "/" + name; }
  std::string Here(const std::string& name) const { return place_.here + "/" + name; }

  // DATA_LOSS if a model was exported here: a run without a checkpoint that has one lost it.
  absl::Status CheckNoResult() const;
  // Files of a run that left no checkpoint, by name; what else is in the folder stays. In a folder
  // they are a launcher's: who starts processes by hand there goes on with what they left.
  absl::StatusOr<std::vector<std::string>> Replaced() const;
  absl::Status Remove(const std::vector<std::string>& names) const;
  // A launcher has run the job before, on this machine.
  bool WasHere() const;
  // NOT_FOUND once the run folder was removed or moved. A store is not asked.
  absl::Status CheckThere() const;

 private:
  RunFolder(RunPlace place, OpenFolder folder)
      : place_(std::move(place)), folder_(std::move(folder)) {}
  // Makes what is missing of the folders.
  static absl::StatusOr<RunFolder> Take(const RunPlace& place);

  RunPlace place_;
  // That of this machine, locked.
  OpenFolder folder_;
};

// The job of a checkpoint, written as `next`, the job that continues from it, would write it: a
// codec that was chosen for `auto` is `auto` again, and a rule that a worker has brought is not
// there.
v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next);

// The complete checkpoints of a run, by clock.
std::vector<ReportInput::Checkpoint> ListCheckpoints(const std::string& run_dir);

}  // namespace leeway
