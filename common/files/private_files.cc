#include "common/files/private_files.h"

#include <cerrno>

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"

namespace leeway {

void KeepFilesPrivate() { umask(S_IRWXG | S_IRWXO); }

absl::Status KeepFolderPrivate(const std::string& folder) {
  KeepFilesPrivate();
  if (chmod(folder.c_str(), S_IRWXU) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("metadata.private: denying other users access to ", folder));
}

absl::Status WritePrivateFile(const std::string& path, std::string_view content) {
  const mode_t before = umask(S_IRWXG | S_IRWXO);
  absl::Status status = MakeFolders(path.substr(0, path.rfind('/')));
  if (status.ok()) status = WriteFileAtomically(path, content);
  umask(before);
  return status;
}

}  // namespace leeway
