#include "common/files/open_folder.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

namespace leeway {

absl::StatusOr<OpenFolder> OpenFolder::Open(const std::string& path) {
  Descriptor folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (*folder >= 0) return OpenFolder(path, std::move(folder));
  return absl::ErrnoToStatus(errno, absl::StrCat("opening folder '", path, "'"));
}

absl::Status OpenFolder::CheckThere() const {
  struct stat held, found;
  const bool same = fstat(*descriptor_, &held) == 0 && stat(path_.c_str(), &found) == 0 &&
                    held.st_dev == found.st_dev && held.st_ino == found.st_ino;
  if (same) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("the folder '", path_, "' was removed or moved while it was in use"));
}

}  // namespace leeway
