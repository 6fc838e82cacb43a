// Prepares a run on the hosts of --hosts: connects to them, and writes the file that names them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/security/settings.h"
#include "launcher/hosts/ssh_hosts.h"
#include "leeway/v1/job.pb.h"
#include "run/run_folder.h"

namespace leeway {

// The file that says which process is on which host. It is in the run's folder on this machine
// while the job runs. Hosts also use it to check that they share the folder.
inline constexpr char kHostsFile[] = "hosts";

// The environment variable that stands for --insecure.
inline constexpr char kInsecure[] = "LEEWAY_INSECURE";

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

// Connects to the hosts of --hosts. Returns null without --hosts. If other machines can reach the
// servers and --insecure is absent, the run must use mutual TLS. If neither the flags nor the job
// set TLS, sets `security` to mutual TLS. If they set anything else, returns INVALID_ARGUMENT.
absl::StatusOr<std::unique_ptr<SshHosts>> ConnectHosts(const HostFlags& flags,
                                                       const v1::TrainingJob& job,
                                                       SecurityFlags& security);

// Writes kHostsFile. Unless the run is in an object store, requires that each host with servers
// sees the file (SshHosts::ShareFile).
absl::Status LeaveHosts(SshHosts& hosts, uint32_t servers, const RunPlace& place);

}  // namespace leeway
