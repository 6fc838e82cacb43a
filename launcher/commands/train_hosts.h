// `leeway train --hosts`: the options, and what they mean for the run's keys.
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
#include "launcher/commands/run_folder.h"
#include "launcher/commands/run_keys.h"
#include "launcher/hosts/ssh_hosts.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// In the run's folder on this machine while the job runs: which process is on which host. Also how
// hosts see that they share the folder.
inline constexpr char kHostsFile[] = "hosts";

struct HostFlags {
  std::string hosts;
  // Without a terminal nobody can type a password. Who is silent for a minute is gone.
  std::string ssh =
      "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "
      "-o ServerAliveCountMax=4";
  std::string remote_bin;
  bool insecure = false;
};
void AddHostOptions(CLI::App& command, HostFlags& flags);

// Null without --hosts. If others reach the hosts' servers, `security` becomes mutual TLS where
// nothing is said of TLS; INVALID_ARGUMENT if something else is, without --insecure.
absl::StatusOr<std::unique_ptr<SshHosts>> ConnectHosts(const HostFlags& flags,
                                                       const v1::TrainingJob& job,
                                                       SecurityFlags& security);

// Writes kHostsFile. Hosts with servers must see it, unless the run is in an object store.
absl::Status LeaveHosts(SshHosts& hosts, uint32_t servers, const RunPlace& place);

Environment ServerEnvironment(const RunKeys& keys, bool insecure);

// What of this process's environment says how to reach an object store, by value, for processes of
// other machines. Files that variables name are not there.
Environment StoreEnvironment();

}  // namespace leeway
