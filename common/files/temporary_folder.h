// A temporary folder for this process and its children.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

enum class TemporaryIn {
  // The system's folder for temporary files.
  kFiles,
  // /dev/shm, which is memory. If no folder can be made there, the system's folder is used, as with
  // kFiles.
  kMemory,
};

// A folder with mode 0700 that disappears with this object. If this process ends without destroying
// the object (Ctrl-C, SIGKILL, a crash), a forked process, the keeper, removes the folder. The
// keeper first waits for the end of all processes started meanwhile. Not thread-safe.
class TemporaryFolder {
 public:
  // Makes a folder whose name begins with `name`.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(
      const std::string& name, TemporaryIn where = TemporaryIn::kFiles);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Returns why the folder is on a disk although kMemory was requested, or an empty string.
  const std::string& why_on_disk() const { return why_on_disk_; }

 private:
  TemporaryFolder(std::string path, std::string why_on_disk)
      : path_(std::move(path)), why_on_disk_(std::move(why_on_disk)) {}
  absl::Status StartKeeper();

  const std::string path_;
  const std::string why_on_disk_;
  // The keeper, and this process's end of a pipe to it. Each process that may write to the folder
  // has the same end open.
  pid_t keeper_ = -1;
  int lifeline_ = -1;
};

}  // namespace leeway
