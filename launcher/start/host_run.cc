#include "launcher/start/host_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/files/files.h"
#include "common/identity.h"
#include "common/status.h"

namespace leeway {
namespace {

// If other machines can reach the hosts and no setting names a TLS mode, sets mutual TLS in
// `security`. Refuses the settings that server 0 would refuse, but before any process starts.
absl::Status Secure(const SshHosts& hosts, const v1::Security& job, bool insecure,
                    SecurityFlags& security) {
  if (!hosts.beyond_loopback()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const v1::TlsMode mode, TlsModeOf(security, job));
  const bool said = !security.tls.empty() || mode != v1::TLS_MODE_NONE;
  if (!said && !insecure) security.tls = "mtls";
  if (!said || insecure || mode == v1::TLS_MODE_MTLS) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--hosts: any machine that reaches these hosts could take part in the job. Leave --tls (and "
      "the job's security.tls.mode) out, or use --tls mtls: each run then makes its own "
      "certificates. Use --insecure if the network admits nobody else");
}

}  // namespace

absl::StatusOr<std::unique_ptr<SshHosts>> ConnectHosts(const HostFlags& flags,
                                                       const v1::TrainingJob& job,
                                                       SecurityFlags& security) {
  if (flags.hosts.empty()) return nullptr;
  ASSIGN_OR_RETURN(std::vector<JobHost> hosts, ParseHosts(flags.hosts, job.workers().count()));
  ASSIGN_OR_RETURN(SshCommand ssh, MakeSshCommand(flags.ssh, flags.remote_bin));
  ASSIGN_OR_RETURN(std::unique_ptr<SshHosts> connected,
                   SshHosts::Connect(std::move(hosts), std::move(ssh)));
  RETURN_IF_ERROR(Secure(*connected, job.security(), flags.insecure, security));
  return connected;
}

absl::Status LeaveHosts(SshHosts& hosts, uint32_t servers, const RunPlace& place) {
  const std::string path = absl::StrCat(place.here, "/", kHostsFile);
  // A random number makes this file differ from every other run's file.
  std::string text = absl::StrFormat("run %016x\n", RandomIdentity());
  for (size_t i = 0; i < hosts.hosts().size(); ++i) {
    absl::StrAppend(&text, hosts.hosts()[i].name, " (", hosts.hosts()[i].address,
                    "): ", ProcessesOf(hosts.hosts(), i, servers), "\n");
  }
  RETURN_IF_ERROR(WriteFileAtomically(path, text));
  if (!place.in_store()) hosts.ShareFile(path, text);
  return absl::OkStatus();
}

}  // namespace leeway
