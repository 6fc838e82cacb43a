// A temporary folder for this process and those that it starts.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

enum class TemporaryIn {
  // The system's folder for temporary files.
  kFiles,
  // /dev/shm, which is memory; where nothing can be made there, the same as kFiles.
  kMemory,
};

// Mode 0700. Gone with this object. Where this process ends without that (Ctrl-C, SIGKILL, a
// crash), a fork of it removes the folder once all that it had started meanwhile has ended too. Not
// thread-safe.
class TemporaryFolder {
 public:
  // Its own name begins with `name`.
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make(
      const std::string& name, TemporaryIn where = TemporaryIn::kFiles);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Of one that was to be in memory and is on a disk: why. Else empty.
  const std::string& why_on_disk() const { return why_on_disk_; }

 private:
  TemporaryFolder(std::string path, std::string why_on_disk)
      : path_(std::move(path)), why_on_disk_(std::move(why_on_disk)) {}
  absl::Status StartKeeper();

  const std::string path_;
  const std::string why_on_disk_;
  // Who removes the folder if nobody else does; and the end of a pipe that every process has open
  // which may write there.
  pid_t keeper_ = -1;
  int lifeline_ = -1;
};

}  // namespace leeway
