// leeway report: writes curves.svg and report.html again, also while the job runs.
#include <iostream>
#include <memory>

#include "common/status.h"
#include "common/storage/storage.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/finish/finish.h"
#include "run/outcome.h"
#include "run/run_folder.h"

namespace leeway {
namespace {

// Returns true if the summary describes the run's current state, and not the state before the run
// was resumed. After a resume, the metrics do not have the end of the job, or have another duration
// than the summary. If the metrics are damaged, the summary counts as current.
bool IsOf(const RunSummary& summary, const RunHistory& history) {
  if (!history.Gaps().empty()) return true;
  if (history.state.empty() && summary.state == "finished") return false;
  return summary.seconds == history.seconds;
}

// Returns a summary for a job that is running or whose launcher was killed.
RunSummary SoFar(const std::string& run_dir, const v1::TrainingJob& job,
                 const RunHistory& history) {
  RunSummary summary;
  summary.state = history.state.empty() ? "unfinished" : history.state;
  AddRun(job, run_dir, history, nullptr, summary);
  return summary;
}

absl::Status Report(const std::string& run_dir) {
  RETURN_IF_ERROR(RunFolder::CheckIsOne(run_dir));
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadStoredJob(run_dir + "/" + kJobFile, {}));
  const v1::TrainingJob& job = placed.job;
  const RunHistory history = ReadHistory(run_dir + "/" + kMetricsFile);
  RunSummary summary = SoFar(run_dir, job, history);
  absl::StatusOr<RunSummary> written = ReadSummary(run_dir);
  if (written.ok() && IsOf(*written, history)) {
    written->warnings = summary.warnings;
    summary = *std::move(written);
  } else if (!written.ok() && !absl::IsNotFound(written.status())) {
    summary.warnings.emplace_back(written.status().message());
  }
  for (const std::string& warning : summary.warnings) std::cerr << "leeway: " << warning << "\n";
  return WriteReport(run_dir, job, history, summary);
}

absl::Status ReportOf(const std::string& given) {
  ASSIGN_OR_RETURN(const std::string run_dir, NormalLocation(given));
  RETURN_IF_ERROR(Report(run_dir));
  std::cout << run_dir << "/" << kReportFile << "\n" << run_dir << "/" << kCurvesFile << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddReportCommand(CLI::App& app, int& exit_code) {
  auto run_dir = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("report", "Write a run's curves and report again");
  command->add_option("RUN_DIR", *run_dir, "The run folder, or s3://BUCKET/PREFIX")->required();
  command->callback([run_dir, &exit_code] { exit_code = ShowResult(ReportOf(*run_dir)); });
}

}  // namespace leeway
