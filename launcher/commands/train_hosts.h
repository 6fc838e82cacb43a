// The options of `leeway train --hosts`, and their effect on the run's keys and processes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/environment.h"
#include "common/process/process.h"
#include "common/security/settings.h"
#include "launcher/commands/run_keys.h"
#include "launcher/hosts/ssh_hosts.h"
#include "leeway/v1/job.pb.h"
#include "run/run_folder.h"

namespace leeway {

// The file that says which process is on which host. It is in the run's folder on this machine
// while the job runs. Hosts also use it to check that they share the folder.
inline constexpr char kHostsFile[] = "hosts";

struct HostFlags {
  std::string hosts;
  // BatchMode makes ssh fail instead of asking for a password, because there may be no terminal.
  // The two ServerAlive options end the connection to a host that does not answer for a minute.
  std::string ssh =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "
      "-o ServerAliveCountMax=4";
  std::string remote_bin;
  bool insecure = false;
};
void AddHostOptions(CLI::App& command, HostFlags& flags);

// Connects to the hosts of --hosts. Returns null without --hosts. If other machines can reach the
// servers, `security` becomes mutual TLS unless the flags or the job set TLS or --insecure is
// present. Returns INVALID_ARGUMENT if they set anything but mutual TLS and --insecure is absent.
absl::StatusOr<std::unique_ptr<SshHosts>> ConnectHosts(const HostFlags& flags,
                                                       const v1::TrainingJob& job,
                                                       SecurityFlags& security);

// Writes kHostsFile. Unless the run is in an object store, each host with servers must see the file
// (SshHosts::ShareFile).
absl::Status LeaveHosts(SshHosts& hosts, uint32_t servers, const RunPlace& place);

// Returns the environment of processes that listen, with `insecure` as the flag --insecure says.
Environment ListenerEnvironment(Environment environment, bool insecure);

// Returns the variables of this process's environment that specify how to reach an object store,
// with their values, for processes on other machines. Omits variables that name files, because the
// files do not exist on other machines.
Environment StoreEnvironment();

}  // namespace leeway
