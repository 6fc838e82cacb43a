#include "common/files/temporary_folder.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kMemoryFolder[] = "/dev/shm";

std::string FolderOfSystem() {
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : temporary.string();
}

absl::StatusOr<std::string> MakeBelow(const std::string& parent, const std::string& name) {
  std::string path = absl::StrCat(parent, "/", name, "-XXXXXX");
  // The umask may also remove the owner's rights, so set the mode again.
  if (mkdtemp(path.data()) != nullptr && chmod(path.c_str(), S_IRWXU) == 0) return path;
  return absl::ErrnoToStatus(errno, absl::StrCat("making ", path));
}

bool IsMemory(const std::string& path) {
  struct statfs found;
  return statfs(path.c_str(), &found) == 0 &&
         (found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC);
}

// Runs in the keeper, the process that removes the folder at `path` when no other process has the
// lifeline open. The keeper leaves the process group, so that Ctrl-C does not end it. It closes all
// other descriptors, so that it keeps no file or pipe of this process open.
[[noreturn]] void Keep(const std::string& path, int lifeline) {
  setpgid(0, 0);
  dup2(lifeline, STDIN_FILENO);
  close_range(STDIN_FILENO + 1, ~0U, 0);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  RemoveTree(path).IgnoreError();
  _exit(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make(const std::string& name,
                                                                       TemporaryIn where) {
  absl::StatusOr<std::string> path;
  std::string why_on_disk;
  if (where == TemporaryIn::kMemory) path = MakeBelow(kMemoryFolder, name);
  if (where == TemporaryIn::kFiles || !path.ok()) {
    why_on_disk = where == TemporaryIn::kFiles ? "" : std::string(path.status().message());
    ASSIGN_OR_RETURN(path, MakeBelow(FolderOfSystem(), name));
  }
  if (IsMemory(*path)) why_on_disk.clear();
  std::unique_ptr<TemporaryFolder> folder(
      new TemporaryFolder(*std::move(path), std::move(why_on_disk)));
  RETURN_IF_ERROR(folder->StartKeeper());
  return folder;
}

absl::Status TemporaryFolder::StartKeeper() {
  int ends[2];
  // The pipe stays open across fork and exec, so servers and workers keep it open, too.
  if (pipe(ends) != 0) return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  lifeline_ = ends[1];
  keeper_ = fork();
  if (keeper_ == 0) {
    close(ends[1]);
    Keep(path_, ends[0]);
  }
  close(ends[0]);
  if (keeper_ > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("starting the process that removes ", path_,
                                          " at the end: fork: ", strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  RemoveTree(path_).IgnoreError();
  if (keeper_ > 0) {
    kill(keeper_, SIGKILL);
    waitpid(keeper_, nullptr, 0);
  }
  if (lifeline_ >= 0) close(lifeline_);
}

}  // namespace leeway
