// The secrets of a run that `leeway train` starts: nobody else on this machine can take part in it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/transport_security.h"
#include "common/security/key_folder.h"
#include "common/security/settings.h"
#include "launcher/supervision/supervisor.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// In the run's folder on this machine while the job runs, for `leeway status` and `leeway resize`:
// the job's token, and a link to the launcher's certificate.
inline constexpr char kTokenFile[] = "token";
inline constexpr char kTlsLink[] = "tls";

// A token, drawn unless one is given, and if the job wants TLS a KeyFolder. They go with this
// object. Whatever else the environment says of TLS and tokens is not for the run's processes.
class RunKeys {
 public:
  // `flags`: of the launcher (DeclareRunSecurity).
  static absl::StatusOr<std::unique_ptr<RunKeys>> Make(const SecurityFlags& flags,
                                                       const v1::Security& job,
                                                       const std::string& folder);
  ~RunKeys();
  RunKeys(const RunKeys&) = delete;

  // The process's from now on, until this object goes.
  void Adopt() const { SetProcessSecurity(own_); }

  Environment ForServers() const { return For(v1::ROLE_SERVER); }
  Environment ForWorkers() const { return For(v1::ROLE_WORKER); }

 private:
  explicit RunKeys(std::string folder) : folder_here_(std::move(folder)) {}
  absl::Status LeaveForCommands() const;
  Environment For(v1::Role role) const;

  const std::string folder_here_;
  v1::TlsMode mode_ = v1::TLS_MODE_NONE;
  // Null without TLS.
  std::unique_ptr<KeyFolder> folder_;
  // The launcher's.
  SecuritySettings own_;
};

// FindCoordinator, with what this process needs to be heard there: `flags`, and where they say
// nothing and `target` is a run folder, what the run has left there.
absl::StatusOr<std::string> ReachCoordinator(const std::string& target, SecurityFlags flags);

}  // namespace leeway
