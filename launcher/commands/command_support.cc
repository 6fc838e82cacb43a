#include "launcher/commands/command_support.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>

#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "common/exit_code.h"
#include "common/files/files.h"
#include "common/host_name.h"
#include "common/object_store/address.h"
#include "common/process/process.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "common/suggestion.h"
#include "launcher/commands/data_check.h"
#include "run/run_folder.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

constexpr Duration kAskAgainAfter = std::chrono::milliseconds(200);

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string CanonicalPath(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path.string() : absolute.string();
}

absl::StatusOr<std::string> GivenFolder(const std::string& path, absl::string_view by) {
  // Reading the job's files will show whether an object location exists.
  if (IsObjectLocation(path)) {
    absl::StatusOr<std::string> location = NormalLocation(path);
    return location.ok() ? location : Annotate(location.status(), by);
  }
  if (IsFolder(path)) return CanonicalPath(path);
  return absl::NotFoundError(absl::StrCat("the data folder ", path, " (", by, ") does not exist"));
}

// Returns the error that this machine has no running job of `location`, which is in an object
// store.
absl::Status NoLauncherHere(const std::string& location, const std::string& here) {
  return absl::NotFoundError(absl::StrCat(
      "leeway train runs no job of ", location, " on this machine with the local folder ", here,
      ": give the folder that --local-dir named, or server 0's HOST:PORT"));
}

constexpr size_t kRunsNamedMax = 5;

absl::Status NoCoordinator(const std::string& run_dir) {
  const std::string summary = run_dir + "/" + kSummaryFile;
  std::error_code error;
  if (fs::exists(summary, error)) {
    return absl::NotFoundError(
        absl::StrCat("no job runs in ", run_dir, " now; its outcome is in ", summary));
  }
  return absl::NotFoundError(absl::StrCat(
      "leeway train runs no job in ", run_dir,
      " now; for a job whose processes were started by hand, give server 0's HOST:PORT"));
}

}  // namespace

void AddSetOption(CLI::App& command, JobOptions& options) {
  command
      .add_option("--set", options.sets,
                  "Change a setting of the job, as in --set consistency.mode=async; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void AddDataOption(CLI::App& command, std::string& data) {
  command
      .add_option("--data", data,
                  "Folder that the job's data paths are in, or s3://BUCKET/PREFIX; default "
                  "$LEEWAY_DATA, then ./data")
      ->type_name("DIR");
}

absl::StatusOr<PlacedJob> LoadJobWithOptions(const JobOptions& options) {
  return LoadStoredJob(options.job_file,
                       {.sets = options.sets, .environment = EnvironmentOverrides()});
}

absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job) {
  if (!option.empty()) return GivenFolder(option, "--data");
  if (const char* variable = std::getenv("LEEWAY_DATA"); variable != nullptr && *variable != 0) {
    return GivenFolder(variable, "LEEWAY_DATA");
  }
  std::vector<std::string> candidates = {"data"};
  if (!job_file.empty() && !IsObjectLocation(job_file)) {
    std::error_code error;
    const fs::path absolute = fs::absolute(job_file, error);
    const fs::path beside = (error ? fs::path(job_file) : absolute).parent_path();
    candidates.push_back((beside / "data").string());
    candidates.push_back((beside.parent_path() / "data").string());
  }
  candidates.push_back(CanonicalPath(fs::path(ProgramFolder()) / "../share/leeway/data"));
  for (const std::string& candidate : candidates) {
    if (IsFolder(candidate)) return CanonicalPath(candidate);
  }
  if (!ReadsDataFolder(job)) return CanonicalPath(".");
  return absl::NotFoundError(
      absl::StrCat("no data folder: give --data DIR or LEEWAY_DATA (looked at ",
                   absl::StrJoin(candidates, ", "), ")"));
}

absl::StatusOr<std::string> FolderHere(const std::string& target) {
  if (!IsObjectLocation(target)) return target;
  ASSIGN_OR_RETURN(RunPlace place, PlaceOfRun(target));
  return std::move(place.here);
}

absl::StatusOr<std::string> FindCoordinator(const std::string& target) {
  ASSIGN_OR_RETURN(const std::string here, FolderHere(target));
  const bool stored = here != target;
  if (!stored && !IsFolder(target)) {
    if (CheckAddressToReach(target).ok()) {
      RETURN_IF_ERROR(CheckHostIsKnown(target));
      return target;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        target, " is not a folder or an address: give the run folder, or server 0's HOST:PORT",
        RunsHere(target)));
  }
  absl::StatusOr<std::string> address = ReadFile(here + "/" + kCoordinatorFile, 4096);
  if (absl::IsNotFound(address.status())) {
    return stored ? NoLauncherHere(target, here) : NoCoordinator(target);
  }
  RETURN_IF_ERROR(address.status());
  return std::string(absl::StripAsciiWhitespace(*address));
}

std::string RunsHere(const std::string& target) {
  std::vector<std::string> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kRunsFolder, error)) {
    if (fs::exists(entry.path() / kJobFile, error)) runs.push_back(entry.path().string());
  }
  if (runs.empty()) return "";
  std::sort(runs.begin(), runs.end());
  const std::string meant = absl::StrCat(kRunsFolder, "/", fs::path(target).filename().string());
  const std::string near = Suggestion(meant, runs);
  if (absl::StartsWith(near, "; did you mean")) return near;
  if (runs.size() > kRunsNamedMax) runs.erase(runs.begin(), runs.end() - kRunsNamedMax);
  return absl::StrCat("; runs here are ", absl::StrJoin(runs, ", "));
}

bool IsSilence(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::Status NobodyAnswers(const std::string& target, const std::string& address) {
  ASSIGN_OR_RETURN(const std::string here, FolderHere(target));
  return absl::UnavailableError(
      absl::StrCat("no process answers at ", address, ", which is the job's address in ", here,
                   "/coordinator. If the job was killed, leeway train --resume --run-dir ", target,
                   " continues the job"));
}

absl::Status AskUntilHeard(const std::string& target, const std::string& address, Time deadline,
                           const std::function<absl::Status()>& ask) {
  bool told = false;
  while (true) {
    const absl::Status status = ask();
    if (!IsSilence(status) || SteadyNow() + kAskAgainAfter > deadline) return status;
    if (address != target) {
      ASSIGN_OR_RETURN(const std::string here, FolderHere(target));
      if (!HasLauncher(here)) return NobodyAnswers(target, address);
    }
    if (!std::exchange(told, true)) {
      std::cerr << "leeway: no process answers at " << address
                << " yet, asking again: " << status.message() << std::endl;
    }
    std::this_thread::sleep_for(kAskAgainAfter);
  }
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

int ShowResult(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  std::cerr << "leeway: " << status.message() << "\n";
  if (absl::IsInvalidArgument(status) || absl::IsAlreadyExists(status)) return kExitUsage;
  return absl::IsDataLoss(status) ? kExitPermanent : kExitTemporary;
}

}  // namespace leeway
