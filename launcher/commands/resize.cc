// leeway resize: changes the number of servers while the job trains.
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
#include "launcher/supervision/resize_watch.h"

namespace leeway {
namespace {

constexpr Duration kResizeCallAtMost = std::chrono::seconds(5);
constexpr Duration kResizePause = std::chrono::milliseconds(200);

struct ResizeOptions {
  std::string target;
  SecurityFlags security;
  uint32_t servers = 0;
  bool no_wait = false;
  double seconds = 120;
};

// Requests the number of servers. Returns the number that was requested before. Waits for the
// coordinator if it is restarting.
absl::StatusOr<uint32_t> AskForServers(const ResizeOptions& options, const std::string& address,
                                       Time deadline) {
  absl::StatusOr<uint32_t> before;
  RETURN_IF_ERROR(AskUntilHeard(options.target, address, deadline, [&] {
    before = RequestServers(address, options.servers, kResizeCallAtMost);
    return before.status();
  }));
  return before;
}

// Asks once how far the resize is. Returns NOT_FOUND if `target` is a run folder whose launcher has
// ended.
absl::StatusOr<ResizeWatch::Step> Look(const std::string& target, const std::string& address,
                                       ResizeWatch& watch) {
  const absl::StatusOr<v1::JobStatus> status = FetchJobStatus(address, kResizeCallAtMost);
  if (status.ok()) return watch.OnStatus(*status);
  RETURN_IF_ERROR(FindCoordinator(target).status());
  return watch.OnSilence(status.status());
}

absl::Status AwaitResize(const ResizeOptions& options, const std::string& address, uint32_t before,
                         Time deadline) {
  ResizeWatch watch(before, options.servers);
  std::string shown;
  while (true) {
    ASSIGN_OR_RETURN(const ResizeWatch::Step step, Look(options.target, address, watch));
    if (step.done) return absl::OkStatus();
    if (step.pending != shown) std::cout << step.pending << std::endl;
    shown = step.pending;
    if (step.ask_again) {
      RETURN_IF_ERROR(AskForServers(options, address, deadline).status());
    }
    if (SteadyNow() + kResizePause > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the resize is not complete yet and goes on (see leeway status): ", shown));
    }
    std::this_thread::sleep_for(kResizePause);
  }
}

absl::Status Resize(const ResizeOptions& options) {
  const Time begun = SteadyNow(), deadline = begun + FromSeconds(options.seconds);
  ASSIGN_OR_RETURN(const std::string address, ReachCoordinator(options.target, options.security));
  ASSIGN_OR_RETURN(const uint32_t before, AskForServers(options, address, deadline));
  std::cout << "servers: " << before << " -> " << options.servers << std::endl;
  if (options.no_wait) return absl::OkStatus();
  RETURN_IF_ERROR(AwaitResize(options, address, before, deadline));
  std::cout << "done in " << Fixed(Seconds(SteadyNow() - begun), 1) << " s\n";
  return absl::OkStatus();
}

}  // namespace

void AddResizeCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ResizeOptions>();
  CLI::App* command =
      app.add_subcommand("resize", "Change the number of servers of a job while it trains");
  command->add_option("JOB", options->target, "The coordinator's HOST:PORT, or the run folder")
      ->required();
  command
      ->add_option("--servers", options->servers,
                   "The new number of servers, at most servers.shards")
      ->required()
      ->check(CLI::Range(1, 4096));
  command->add_flag("--no-wait", options->no_wait, "Return once the request is recorded");
  command->add_option("--timeout", options->seconds, "How many seconds to wait")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  DeclareSecurity(*command, options->security, EndOfCalls::kCalls);
  command->callback([options, &exit_code] { exit_code = ShowResult(Resize(*options)); });
}

}  // namespace leeway
