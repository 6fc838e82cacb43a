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
  // /dev/shm, which is in memory. If the system does not have it, the same as kFiles.
  kMemory,
};

// A folder with mode 0700 that disappears with this object. If this process ends without destroying
// the object (Ctrl-C, SIGKILL, a crash), a forked process, the keeper, removes the folder. It waits
// until all processes that this process has started meanwhile have ended, too. Not thread-safe.
class TemporaryFolder {
 public:
  // Makes a folder whose name begins with `name`.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(
      const std::string& name, TemporaryIn where = TemporaryIn::kFiles);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  absl::Status StartKeeper();

  const std::string path_;
  // The keeper, and the end of a pipe. This end is open in each process that may write to the
  // folder.
  pid_t keeper_ = -1;
  int lifeline_ = -1;
};

}  // namespace leeway
