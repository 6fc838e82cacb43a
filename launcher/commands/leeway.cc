#include <csignal>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/command_line/command_line.h"
#include "common/exit_code.h"
#include "common/log.h"
#include "common/protocol.h"
#include "common/room.h"
#include "common/rpc/library_log.h"
#include "launcher/commands/commands.h"
#include "launcher/start/worker_command.h"

namespace leeway {

namespace {

// Returns the exit code for `code`. If the result could not be written to standard output, a
// successful command counts as failed.
int CodeOf(int code) {
  if (std::cout.flush()) return code;
  std::cerr << "leeway: standard output cannot be written; is its disk full?\n";
  return code == kExitDone ? kExitTemporary : code;
}

}  // namespace

int RunLeeway(int argc, const char* const* argv) {
  // Restore the default action of SIGCHLD. If the parent ignores SIGCHLD, this process inherits
  // that, and the kernel then drops the exit codes of its children.
  signal(SIGCHLD, SIG_DFL);
  NameLimitsOfMemory();
  // The log goes to standard error, so that it is not part of a result. This includes the log of
  // the gRPC library.
  SetUpLog({.role = "leeway"}).IgnoreError();
  TakeLibraryLog(/*handshakes=*/false);
  CLI::App app("Leeway: training with parameter servers. A job is one YAML file.", "leeway");
  int exit_code = kExitDone;
  const std::string version = absl::StrCat("leeway ", kVersion, ", protocol ", kProtocol);
  app.set_version_flag("--version", version);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  SplitCommandLine line = SplitAtCommand(argc, argv);
  AddTrainCommand(app, exit_code, line.command);
  AddPlanCommand(app, exit_code);
  AddDataCommand(app, exit_code);
  AddInitCommand(app, exit_code);
  AddEvaluateCommand(app, exit_code);
  AddExportCommand(app, exit_code);
  AddStatusCommand(app, exit_code);
  AddResizeCommand(app, exit_code);
  AddStopCommand(app, exit_code);
  AddReportCommand(app, exit_code);
  AddBenchCommand(app, exit_code);
  AddDoctorCommand(app, exit_code);
  AddCertificatesCommand(app, exit_code);
  AddKubernetesCommand(app, exit_code, std::move(line.command));
  AddHealthCommand(app, exit_code);
  AddRemoteCommand(app, exit_code);
  app.add_subcommand("version", "Print the version")->callback([&version] {
    std::cout << version << "\n";
  });
  const auto shown = ParseCommandLine(app, static_cast<int>(line.own.size()), line.own.data());
  return CodeOf(shown.value_or(exit_code));
}

}  // namespace leeway
