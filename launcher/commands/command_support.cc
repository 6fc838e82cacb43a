#include "launcher/commands/command_support.h"

#include <iostream>

#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "run/run_folder.h"

namespace leeway {

void AddSetOption(CLI::App& command, JobFlags& options) {
  command
      .add_option("--set", options.sets,
                  "Change a setting of the job, as in --set consistency.mode=async; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddDataOption(CLI::App& command, std::string& data) {
  command
      .add_option(
          "--data", data,
          "Folder of the job's data, or s3://BUCKET/PREFIX; default $LEEWAY_DATA, or else ./data")
      ->type_name("DIR");
}

absl::StatusOr<PlacedJob> LoadJobWithOptions(const JobFlags& options) {
  return LoadStoredJob(options.job_file,
                       {.sets = options.sets, .environment = EnvironmentOverrides()});
}

CLI::Validator NumberIn(double min, double max) {
  const auto check = [min, max](std::string& text) -> std::string {
    double value = 0;
    if (absl::SimpleAtod(text, &value) && value >= min && value <= max) return "";
    return absl::StrCat("'", text, "' is not a number from ", min, " to ", max);
  };
  return CLI::Validator(check, absl::StrCat("NUMBER in [", min, " - ", max, "]"));
}

void ShowProgress(const std::string& what) {
  if (!isatty(STDERR_FILENO)) return;
  std::cerr << "\r\033[K" << what << (what.empty() ? "" : " ...") << std::flush;
}

absl::Status WriteJson(const std::string& file, nlohmann::ordered_json document,
                       const absl::Status& done) {
  if (file.empty()) return done;
  if (!done.ok()) document["error"] = std::string(done.message());
  const absl::Status written = WriteFileAtomically(
      file, document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
      WriteTo::kAnything);
  return done.ok() ? written : done;
}

int ShowResult(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  std::cerr << "leeway: " << status.message() << "\n";
  if (absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status)) return kExitUsage;
  return absl::IsDataLoss(status) ? kExitPermanent : kExitTemporary;
}

}  // namespace leeway
