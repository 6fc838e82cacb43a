// leeway resize: another number of servers, while the job trains.
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/clock.h"
#include "common/status.h"
#include "deploy/base/format.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/coordinator_client.h"

namespace leeway {
namespace {

constexpr Duration kCallAtMost = std::chrono::seconds(5);
constexpr Duration kPause = std::chrono::milliseconds(200);

struct ResizeOptions {
  std::string target;
  uint32_t servers = 0;
  bool no_wait = false;
  double seconds = 120;
};

Time Now() { return std::chrono::steady_clock::now(); }

// Also while the coordinator, or the job with it, is just coming back.
absl::StatusOr<uint32_t> Ask(const std::string& address, uint32_t servers, Time deadline) {
  while (true) {
    absl::StatusOr<uint32_t> before = RequestServers(address, servers, kCallAtMost);
    if (!absl::IsUnavailable(before.status()) || Now() + kPause > deadline) return before;
    std::this_thread::sleep_for(kPause);
  }
}

// What is still to happen; empty: nothing.
std::string Pending(const v1::JobStatus& status, uint32_t servers) {
  std::vector<std::string> absent, leaving;
  for (const v1::ServerStatus& server : status.servers()) {
    const bool here = server.state() == "registered" || server.state() == "ready";
    if (server.index() < servers && !here) absent.push_back(absl::StrCat(server.index()));
    if (server.index() >= servers && here) leaving.push_back(absl::StrCat(server.index()));
  }
  std::vector<std::string> parts;
  if (status.shards_to_move() > 0) {
    parts.push_back(absl::StrCat("shards to move: ", status.shards_to_move()));
  }
  const auto servers_of = [](const std::vector<std::string>& indices) {
    return absl::StrCat(indices.size() > 1 ? "servers " : "server ", absl::StrJoin(indices, ", "));
  };
  if (!absent.empty()) parts.push_back("waiting for " + servers_of(absent));
  if (!leaving.empty()) parts.push_back("to leave: " + servers_of(leaving));
  return absl::StrJoin(parts, "; ");
}

absl::Status Wait(const std::string& address, uint32_t servers, Time deadline) {
  std::string shown;
  while (true) {
    const absl::StatusOr<v1::JobStatus> status = FetchJobStatus(address, kCallAtMost);
    std::string pending = std::string(status.status().message());
    if (status.ok()) {
      if (status->state() != v1::JOB_RUNNING) {
        return absl::FailedPreconditionError("the job does not run any more");
      }
      if (status->servers_wanted() != servers) {
        return absl::AbortedError(
            absl::StrCat("somebody has asked for ", status->servers_wanted(), " servers since"));
      }
      pending = Pending(*status, servers);
      if (pending.empty()) return absl::OkStatus();
    }
    if (pending != shown) std::cout << pending << std::endl;
    shown = std::move(pending);
    if (Now() + kPause > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("not complete yet, and it goes on (leeway status): ", shown));
    }
    std::this_thread::sleep_for(kPause);
  }
}

absl::Status Resize(const ResizeOptions& options) {
  const Time begun = Now(), deadline = begun + FromSeconds(options.seconds);
  ASSIGN_OR_RETURN(const std::string address, FindCoordinator(options.target));
  ASSIGN_OR_RETURN(const uint32_t before, Ask(address, options.servers, deadline));
  std::cout << "servers: " << before << " -> " << options.servers << std::endl;
  if (options.no_wait) return absl::OkStatus();
  RETURN_IF_ERROR(Wait(address, options.servers, deadline));
  std::cout << "done in " << Fixed(Seconds(Now() - begun), 1) << " s\n";
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
                   "How many there are to be, at most servers.shards")
      ->required()
      ->check(CLI::Range(1, 4096));
  command->add_flag("--no-wait", options->no_wait, "Return when it is on record");
  command->add_option("--timeout", options->seconds, "How many seconds to wait")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->callback([options, &exit_code] { exit_code = ShowResult(Resize(*options)); });
}

}  // namespace leeway
