// The secrets of a run that `leeway train` starts. They keep other users of this machine out of the
// run.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/transport_security.h"
#include "common/security/key_folder.h"
#include "common/security/settings.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The job's token, and a link to the launcher's certificate. They are in the run's folder on this
// machine while the job runs, for commands such as `leeway status` and `leeway resize`.
inline constexpr char kTokenFile[] = "token";
inline constexpr char kTlsLink[] = "tls";

// Holds a run's token and, if the job wants TLS, its KeyFolder. The token is random unless the user
// specifies a token. The destructor removes the files. The run's processes use these keys only, not
// other settings of TLS and tokens in the environment.
class RunKeys {
 public:
  // `flags` are the flags of the launcher (DeclareRunSecurity).
  static absl::StatusOr<std::unique_ptr<RunKeys>> Make(const SecurityFlags& flags,
                                                       const v1::Security& job,
                                                       const std::string& folder);
  ~RunKeys();
  RunKeys(const RunKeys&) = delete;

  // Applies the launcher's settings to this process until this object is destroyed.
  void Adopt() const { SetProcessSecurity(own_); }

  Environment ForServers() const { return For(v1::ROLE_SERVER); }
  Environment ForWorkers() const { return For(v1::ROLE_WORKER); }
  // Returns the variables for workers that also hold blocks.
  Environment ForPeers() const { return For(v1::ROLE_PEER); }

 private:
  explicit RunKeys(std::string folder) : folder_here_(std::move(folder)) {}
  absl::Status LeaveForCommands() const;
  Environment For(v1::Role role) const;

  const std::string folder_here_;
  v1::TlsMode mode_ = v1::TLS_MODE_NONE;
  // The certificates of the run. Null without TLS.
  std::unique_ptr<KeyFolder> folder_;
  // The settings of the launcher.
  SecuritySettings own_;
};

}  // namespace leeway
