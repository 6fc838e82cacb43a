// Certificates and keys for the processes of one run on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/files/temporary_folder.h"
#include "common/security/settings.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// Returns a warning if the keys in `folder` are on a disk and not in memory. The warning says where
// they are, and why. Returns an empty string if they are in memory.
std::string WarningOfKeys(const TemporaryFolder& folder);

// Makes an authority, and a certificate for each role that takes part in a run. The files are in
// memory if possible. They disappear with this object. If this process dies first, they disappear
// when all processes that use them have ended. The authority's key is not stored.
class KeyFolder {
 public:
  static absl::StatusOr<std::unique_ptr<KeyFolder>> Make();

  // Returns the warning of WarningOfKeys for this folder.
  std::string Warning() const;
  // Returns the folder for --tls-dir. `role` is server, worker or launcher.
  std::string Of(v1::Role role) const;
  // Returns settings for mutual TLS without a token.
  absl::StatusOr<SecuritySettings> SettingsFor(v1::Role role) const;

 private:
  explicit KeyFolder(std::unique_ptr<TemporaryFolder> folder) : folder_(std::move(folder)) {}

  const std::unique_ptr<TemporaryFolder> folder_;
};

}  // namespace leeway
