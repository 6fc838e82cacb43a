// The folder that a run leaves behind.
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

// Of the launcher alone, besides those of run_files.h.
inline constexpr char kLauncherLog[] = "launcher.log";
// host:port, while the job runs.
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kCurvesFile[] = "curves.svg";
inline constexpr char kReportFile[] = "report.html";

// runs/NAME-20261120-104500, in local time; with -2, -3 ... where that is there already.
std::string DefaultRunFolder(const std::string& name, std::time_t now);

// A run folder owned by one launcher: while this object lives, no other launcher has it.
class RunFolder {
 public:
  // Makes the folder. ALREADY_EXISTS if there is something in it, except a launcher's run without a
  // checkpoint. Such a folder may be used again, and `replaced()` says what is then replaced.
  static absl::StatusOr<RunFolder> Create(const std::string& path);
  // Opens the folder of a run that will continue or be finished. NOT_FOUND if no run is there,
  // FAILED_PRECONDITION if it is running.
  static absl::StatusOr<RunFolder> Open(const std::string& path);
  // NOT_FOUND unless a run has been started there, not only a job file put there.
  static absl::Status CheckIsOne(const std::string& path);
  // NOT_FOUND if no run is there.
  static absl::Status CheckHoldsRun(const std::string& path);

  // Absolute.
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // DATA_LOSS if a model was exported here: a run without a checkpoint that has one lost it.
  absl::Status CheckNoResult() const;
  // Files of a run of the launcher's that left no checkpoint, by name; what else is in the folder
  // stays.
  std::vector<std::string> replaced() const;
  absl::Status RemoveReplaced() const;
  // NOT_FOUND once it was removed or moved.
  absl::Status CheckThere() const { return folder_.CheckThere(); }

 private:
  RunFolder(std::string path, OpenFolder folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  static absl::StatusOr<RunFolder> Lock(const std::string& path);

  std::string path_;
  // Locked.
  OpenFolder folder_;
};

// The job of a checkpoint, written as `next`, the job that continues from it, would write it: a
// codec that was chosen for `auto` is `auto` again, and a rule that a worker has brought is not
// there.
v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next);

// The complete checkpoints of a run, by clock.
std::vector<ReportInput::Checkpoint> ListCheckpoints(const std::string& run_dir);

}  // namespace leeway
