#include "common/files/private_files.h"

#include <cerrno>

#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace leeway {

void KeepFilesPrivate() { umask(S_IRWXG | S_IRWXO); }

absl::Status KeepFolderPrivate(const std::string& folder) {
  KeepFilesPrivate();
  if (chmod(folder.c_str(), S_IRWXU) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("metadata.private: keeping ", folder, " from other users"));
}

}  // namespace leeway
