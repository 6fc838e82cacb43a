#include "launcher/commands/running_job.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/address.h"
#include "common/files/files.h"
#include "common/host_name.h"
#include "common/object_store/address.h"
#include "common/rpc/transport_security.h"
#include "common/status.h"
#include "common/suggestion.h"
#include "launcher/start/run_keys.h"
#include "run/run_folder.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

constexpr Duration kAskAgainAfter = std::chrono::milliseconds(200);
constexpr size_t kRunsNamedMax = 5;

bool IsFolder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Returns the error for a run in an object store, at `location`, for which no launcher runs on this
// machine.
absl::Status NoLauncherHere(const std::string& location, const std::string& here) {
  return absl::NotFoundError(absl::StrCat(
      "no `leeway train` on this machine runs the job in ", location, " with the local folder ",
      here, ": give the folder that --local-dir named, or server 0's HOST:PORT"));
}

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

void FindRunKeys(const std::string& folder, SecurityFlags& flags) {
  const std::string token = absl::StrCat(folder, "/", kTokenFile);
  const std::string tls = absl::StrCat(folder, "/", kTlsLink);
  std::error_code error;
  const bool says_token = !flags.token.empty() || !flags.token_file.empty();
  if (!says_token && fs::exists(token, error)) flags.token_file = token;
  const bool says_tls = !flags.tls.empty() || !flags.tls_dir.empty() || !flags.certificate.empty();
  if (!says_tls && fs::exists(tls, error)) {
    flags.tls = "mtls";
    flags.tls_dir = tls;
  }
}

}  // namespace

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
      absl::StrCat("no process answers at ", address, ", which is the job's address in ", here, "/",
                   kCoordinatorFile, ". If the job was killed, leeway train --resume --run-dir ",
                   target, " continues the job"));
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

absl::StatusOr<std::string> ReachCoordinator(const std::string& target, SecurityFlags flags) {
  ASSIGN_OR_RETURN(std::string address, FindCoordinator(target));
  if (address != target) {
    ASSIGN_OR_RETURN(const std::string here, FolderHere(target));
    FindRunKeys(here, flags);
  }
  ASSIGN_OR_RETURN(SecuritySettings security, SettingsOf(flags, {}, EndOfCalls::kCalls));
  SetProcessSecurity(std::move(security));
  return address;
}

}  // namespace leeway
