// leeway stop: ends a running job in an orderly way, with a checkpoint.
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/command_line/security_flags.h"
#include "common/status.h"
#include "common/text/format.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/running_job.h"
#include "launcher/supervision/coordinator_client.h"

namespace leeway {
namespace {

constexpr Duration kStopCallAtMost = std::chrono::seconds(5);
constexpr Duration kStopPause = std::chrono::milliseconds(200);

struct StopOptions {
  std::string target;
  SecurityFlags security;
  std::string reason = "leeway stop";
  bool no_wait = false;
  double seconds = 120;
};

// Waits until the job has ended. It has ended if its status says so, or if the coordinator, which
// ends with the job, no longer answers.
absl::Status AwaitEnd(const std::string& address, Time deadline) {
  std::string shown;
  while (true) {
    const absl::StatusOr<v1::JobStatus> status = FetchJobStatus(address, kStopCallAtMost);
    if (IsSilence(status.status())) return absl::OkStatus();
    RETURN_IF_ERROR(status.status());
    if (status->state() == v1::JOB_FAILED) {
      return absl::InternalError(absl::StrCat("the job failed: ", status->message()));
    }
    if (status->state() >= v1::JOB_FINISHED) return absl::OkStatus();
    if (status->message() != shown) std::cout << status->message() << std::endl;
    shown = status->message();
    if (SteadyNow() + kStopPause > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the job has not ended yet and is still stopping (see leeway status): ", shown));
    }
    std::this_thread::sleep_for(kStopPause);
  }
}

absl::Status Stop(const StopOptions& options) {
  const Time begun = SteadyNow(), deadline = begun + FromSeconds(options.seconds);
  ASSIGN_OR_RETURN(const std::string address, ReachCoordinator(options.target, options.security));
  RETURN_IF_ERROR(AskUntilHeard(options.target, address, deadline, [&] {
    return RequestStop(address, options.reason, kStopCallAtMost);
  }));
  if (options.no_wait) return absl::OkStatus();
  RETURN_IF_ERROR(AwaitEnd(address, deadline));
  std::cout << "ended after " << Fixed(Seconds(SteadyNow() - begun), 1) << " s\n";
  return absl::OkStatus();
}

}  // namespace

void AddStopCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<StopOptions>();
  CLI::App* command = app.add_subcommand("stop", "End a running job in order, with a checkpoint");
  command->add_option("JOB", options->target, "The coordinator's HOST:PORT, or the run folder")
      ->required();
  command->add_option("--reason", options->reason, "Reason for the job's log")
      ->capture_default_str();
  command->add_flag("--no-wait", options->no_wait, "Return once the coordinator has the request");
  command->add_option("--timeout", options->seconds, "How many seconds to wait")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  DeclareSecurity(*command, options->security, EndOfCalls::kCalls);
  command->callback([options, &exit_code] { exit_code = ShowResult(Stop(*options)); });
}

}  // namespace leeway
