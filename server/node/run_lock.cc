#include "server/node/run_lock.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include "absl/strings/str_cat.h"
#include "run/run_folder.h"

namespace leeway {

absl::StatusOr<Descriptor> LockRun(const std::string& run_dir) {
  // Every run has this file, and nothing ever replaces it.
  const std::string path = absl::StrCat(run_dir, "/", kMetricsFile);
  Descriptor file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (*file < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening '", path, "'"));
  if (flock(*file, LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) {
    return absl::UnavailableError(
        absl::StrCat("another server 0 runs a job in --run-dir ", run_dir,
                     ": stop that server, or give this server another run folder"));
  }
  spdlog::warn(
      "flock of '{}': {}; so nothing prevents a second server 0 from using this run folder", path,
      strerror(errno));
  return file;
}

}  // namespace leeway
