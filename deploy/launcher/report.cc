// leeway report: curves.svg and report.html anew, also while the job runs.
#include <iostream>
#include <memory>

#include "common/status.h"
#include "config/job.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/finish.h"
#include "deploy/launcher/run_folder.h"

namespace leeway {
namespace {

// Of the run as it is, not of what came of it before it was resumed: since then time has passed in
// its metrics, or at least its end is gone from them.
bool IsOf(const RunSummary& summary, const RunHistory& history) {
  if (history.state.empty() && summary.state == "finished") return false;
  return summary.seconds == history.seconds;
}

absl::Status Report(const std::string& run_dir) {
  ASSIGN_OR_RETURN(const v1::TrainingJob job, LoadJob(run_dir + "/" + kJobFile, {}));
  ASSIGN_OR_RETURN(const RunHistory history, ReadHistory(run_dir + "/" + kMetricsFile));
  RunSummary summary;
  absl::StatusOr<RunSummary> written = ReadSummary(run_dir);
  if (!written.ok() && !absl::IsNotFound(written.status())) return written.status();
  if (written.ok() && IsOf(*written, history)) {
    summary = *std::move(written);
  } else {
    // The job runs, or its launcher was killed.
    summary.name = job.metadata().name();
    summary.state = history.state.empty() ? "unfinished" : history.state;
    summary.servers = job.servers().count();
    summary.workers = job.workers().count();
    AddHistory(history, summary);
  }
  RETURN_IF_ERROR(WriteReport(run_dir, job, history, summary));
  std::cout << run_dir << "/" << kReportFile << "\n" << run_dir << "/" << kCurvesFile << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddReportCommand(CLI::App& app, int& exit_code) {
  auto run_dir = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("report", "Write a run's curves and report anew");
  command->add_option("RUN_DIR", *run_dir, "The run folder")->required();
  command->callback([run_dir, &exit_code] { exit_code = ShowResult(Report(*run_dir)); });
}

}  // namespace leeway
