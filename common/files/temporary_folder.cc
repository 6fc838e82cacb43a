#include "common/files/temporary_folder.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kMemoryFolder[] = "/dev/shm";

std::string ParentIn(TemporaryIn where) {
  if (where == TemporaryIn::kMemory && access(kMemoryFolder, W_OK) == 0) return kMemoryFolder;
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  return error ? "/tmp" : temporary.string();
}

absl::StatusOr<std::string> MakeTemporary(const std::string& name, TemporaryIn where) {
  std::string path = absl::StrCat(ParentIn(where), "/", name, "-XXXXXX");
  if (mkdtemp(path.data()) != nullptr) return path;
  return absl::InternalError(absl::StrCat("making ", path, ": ", strerror(errno)));
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
  ASSIGN_OR_RETURN(std::string path, MakeTemporary(name, where));
  std::unique_ptr<TemporaryFolder> folder(new TemporaryFolder(std::move(path)));
  RETURN_IF_ERROR(folder->StartKeeper());
  return folder;
}

absl::Status TemporaryFolder::StartKeeper() {
  int ends[2];
  // The pipe stays open across exec, so servers and workers keep it open, as forks of this process
  // do.
  if (pipe(ends) != 0) return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));
  lifeline_ = ends[1];
  keeper_ = fork();
  if (keeper_ == 0) {
    close(ends[1]);
    Keep(path_, ends[0]);
  }
  close(ends[0]);
  if (keeper_ > 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("keeping ", path_, ": fork: ", strerror(errno)));
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
