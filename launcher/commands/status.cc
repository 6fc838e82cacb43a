// leeway status: shows what a running job is doing.
#include "common/status.h"

#include <iostream>
#include <memory>

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include "common/command_line/security_flags.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/running_job.h"
#include "launcher/supervision/coordinator_client.h"
#include "launcher/supervision/display.h"
#include "launcher/supervision/live_view.h"
#include "launcher/supervision/screen.h"

namespace leeway {
namespace {

// The time limit of a call. It leaves room for one lost DNS query, which is repeated after five
// seconds.
constexpr Duration kTimeout = std::chrono::seconds(10);
// The size of output that does not go to a terminal. It is large, because readers can cut lines.
constexpr size_t kWidth = 500;
constexpr size_t kHeight = 100000;

struct StatusOptions {
  std::string target;
  SecurityFlags security;
  bool json = false;
};

absl::Status Print(const v1::JobStatus& status, bool json) {
  if (!json) {
    const size_t width = OutputIsTerminal() ? TerminalColumns(STDOUT_FILENO) : kWidth;
    for (const ViewLine& line : RenderLiveView(status, {}, width, kHeight)) {
      std::cout << line.text << "\n";
    }
    return absl::OkStatus();
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(status, &text, options).ok()) {
    return absl::InternalError("the status cannot be written as JSON");
  }
  std::cout << text;
  return absl::OkStatus();
}

absl::Status ShowStatus(const StatusOptions& options) {
  ASSIGN_OR_RETURN(const std::string address, ReachCoordinator(options.target, options.security));
  const absl::StatusOr<v1::JobStatus> status = FetchJobStatus(address, kTimeout);
  const bool by_folder = address != options.target;
  if (by_folder && IsSilence(status.status())) return NobodyAnswers(options.target, address);
  RETURN_IF_ERROR(status.status());
  return Print(*status, options.json);
}

}  // namespace

void AddStatusCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "Show what a running job is doing");
  command->add_option("JOB", options->target, "The coordinator's HOST:PORT, or the run folder")
      ->required();
  command->add_flag("--json", options->json, "Print the coordinator's JobStatus message, as JSON");
  DeclareSecurity(*command, options->security, EndOfCalls::kCalls);
  command->callback([options, &exit_code] { exit_code = ShowResult(ShowStatus(*options)); });
}

}  // namespace leeway
