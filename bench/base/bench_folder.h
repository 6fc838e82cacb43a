// A temporary folder for what a benchmark's processes write.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace leeway {

// Gone with this object. Where this process ends without that (Ctrl-C, SIGKILL, a crash), a fork of
// it removes the folder once all that it had started meanwhile has ended too. Not thread-safe.
class BenchFolder {
 public:
  static absl::StatusOr<std::unique_ptr<BenchFolder>> Make();
  ~BenchFolder();
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit BenchFolder(std::string path) : path_(std::move(path)) {}
  absl::Status StartKeeper();

  const std::string path_;
  // Who removes the folder if nobody else does; and the end of a pipe that every process has open
  // which may write there.
  pid_t keeper_ = -1;
  int lifeline_ = -1;
};

}  // namespace leeway
