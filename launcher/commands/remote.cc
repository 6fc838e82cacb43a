// leeway remote: runs a process on a host for `leeway train --hosts`.
#include <unistd.h>

#include "launcher/commands/commands.h"
#include "launcher/hosts/remote_end.h"

namespace leeway {

void AddRemoteCommand(CLI::App& app, int& exit_code) {
  // No list of commands shows this command, because people do not type it.
  app.add_subcommand("remote",
                     "What `leeway train --hosts` runs on each host: one server or worker, which "
                     "ends with the connection")
      ->group("")
      ->callback([&exit_code] { exit_code = RunRemoteEnd(STDIN_FILENO, STDOUT_FILENO); });
}

}  // namespace leeway
