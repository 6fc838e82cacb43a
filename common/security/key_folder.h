// Keys for the processes of one run on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/files/temporary_folder.h"
#include "common/security/settings.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// Of a folder that was to keep keys in memory: where they are, and why. Empty: in memory.
std::string WarningOfKeys(const TemporaryFolder& folder);

// An authority, and a certificate for each role that takes part in a run. They lie in memory
// where there is a folder for that, and go with this object, or when all who use them have died.
// The authority's key is nowhere.
class KeyFolder {
 public:
  static absl::StatusOr<std::unique_ptr<KeyFolder>> Make();

  // Empty: they lie in memory. Else a warning that says where, and why.
  std::string Warning() const;
  // Server, worker or launcher: a folder for --tls-dir.
  std::string Of(v1::Role role) const;
  // Mutual TLS, without a token.
  absl::StatusOr<SecuritySettings> SettingsFor(v1::Role role) const;

 private:
  explicit KeyFolder(std::unique_ptr<TemporaryFolder> folder) : folder_(std::move(folder)) {}

  const std::unique_ptr<TemporaryFolder> folder_;
};

}  // namespace leeway
