// The folder that a run leaves behind.
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "deploy/launcher/report/report_html.h"
#include "leeway/v1/checkpoint.pb.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Files in a run folder; checkpoints/ and logs/ are beside them.
inline constexpr char kJobFile[] = "job.yaml";
inline constexpr char kMetricsFile[] = "metrics.jsonl";
inline constexpr char kLauncherLog[] = "launcher.log";
// host:port, while the job runs.
inline constexpr char kCoordinatorFile[] = "coordinator";
inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kCurvesFile[] = "curves.svg";
inline constexpr char kReportFile[] = "report.html";
inline constexpr char kSummaryFile[] = "summary.json";

// runs/NAME-20261120-104500, in local time; with -2, -3 ... where that is there already.
std::string DefaultRunFolder(const std::string& name, std::time_t now);

// A run folder in the hands of one launcher: while this object lives, no other has it.
class RunFolder {
 public:
  // Makes it. ALREADY_EXISTS if there is something in it.
  static absl::StatusOr<RunFolder> Create(const std::string& path);
  // Of a run that is to go on or to be finished. NOT_FOUND if no run is there, FAILED_PRECONDITION
  // if it is running.
  static absl::StatusOr<RunFolder> Open(const std::string& path);
  // NOT_FOUND if no run is there.
  static absl::Status CheckHoldsRun(const std::string& path);
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  // Absolute.
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  static absl::StatusOr<RunFolder> Lock(const std::string& path);

  std::string path_;
  int lock_;
};

// The job that a checkpoint comes of, as `next`, which is to go on from it, would have said it: a
// codec that was chosen in place of its `auto` is `auto` again.
v1::TrainingJob JobSoFar(const v1::CheckpointManifest& newest, const v1::TrainingJob& next);

// The complete checkpoints of a run, by clock.
std::vector<ReportInput::Checkpoint> ListCheckpoints(const std::string& run_dir);

}  // namespace leeway
