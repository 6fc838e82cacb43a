// Keys for the processes of one run on this machine.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/security/settings.h"
#include "leeway/v1/options.pb.h"

namespace leeway {

// An authority, and a certificate for each role that takes part in a run. They lie in memory
// (/dev/shm) where there is such a folder, else in the folder for temporary files, and go with this
// object. The authority's key is nowhere.
class KeyFolder {
 public:
  static absl::StatusOr<std::unique_ptr<KeyFolder>> Make();
  ~KeyFolder();
  KeyFolder(const KeyFolder&) = delete;

  // Server, worker or launcher: a folder for --tls-dir.
  std::string Of(v1::Role role) const;
  // Mutual TLS, without a token.
  SecuritySettings SettingsFor(v1::Role role) const;

 private:
  explicit KeyFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

}  // namespace leeway
