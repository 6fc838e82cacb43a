// leeway plan: describes what a job would do and need, without running it.
#include <iostream>
#include <memory>

#include "common/status.h"
#include "config/external.h"
#include "config/job.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/plan/algorithm.h"
#include "launcher/plan/checked_job.h"
#include "launcher/plan/data_files.h"
#include "launcher/plan/model_table.h"
#include "launcher/plan/plan_report.h"

namespace leeway {
namespace {

absl::StatusOr<CheckedJob> CheckHere(const PlacedJob& placed, const JobFlags& options) {
  ASSIGN_OR_RETURN(const std::string data_dir,
                   FindDataFolder(options.data, options.job_file, placed.job));
  return CheckJobAndInitial(placed, data_dir);
}

absl::Status ShowModel(const JobFlags& options) {
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options));
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckHere(placed, options));
  std::cout << ModelTable(placed.job.model(), *checked.model, placed.job.data().batch_size());
  return absl::OkStatus();
}

absl::Status ShowPlan(const JobFlags& options) {
  ASSIGN_OR_RETURN(const PlacedJob placed, LoadJobWithOptions(options));
  const v1::TrainingJob& job = placed.job;
  std::cout << ToYaml(job) << "\n# " << DescribeAlgorithm(job) << "\n" << std::flush;
  if (IsExternal(job)) return PrintExternalPlan(placed);
  ASSIGN_OR_RETURN(const CheckedJob checked, CheckHere(placed, options));
  std::cerr << WarningsOf(job, checked);
  return PrintPlan(job, checked);
}

}  // namespace

void AddPlanCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<JobFlags>();
  auto model = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "plan", "Print the resolved job, the model, its placement, memory and traffic; runs nothing");
  command->add_option("JOB", options->job_file, "The job file")->required();
  AddSetOption(*command, *options);
  AddDataOption(*command, options->data);
  command->add_flag("--model", *model, "Print the model as a table instead, layer by layer");
  command->callback([options, model, &exit_code] {
    exit_code = ShowResult(*model ? ShowModel(*options) : ShowPlan(*options));
  });
}

}  // namespace leeway
