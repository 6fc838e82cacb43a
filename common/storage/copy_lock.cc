#include "common/storage/copy_lock.h"

#include <cerrno>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

namespace leeway {
namespace {

constexpr std::chrono::milliseconds kAskAgainAfter(5);

}  // namespace

CopyLock::CopyLock(const std::string& path, const std::string& name, Duration patience)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR)) {
  // Each name locks one byte of the file. If two names have the same byte, the lock for one name
  // also waits for the lock for the other, which is unnecessary but does no harm.
  struct flock byte = {};
  byte.l_type = F_WRLCK;
  byte.l_whence = SEEK_SET;
  byte.l_start = static_cast<off_t>(std::hash<std::string>()(name) >> 2);
  byte.l_len = 1;
  const Time end = std::chrono::steady_clock::now() + patience;
  // The lock belongs to the open file and not to the process, so it also works between threads.
  while (fcntl(*file_, F_OFD_SETLK, &byte) != 0) {
    // Other errors mean that the file system has no locks, so continue without one.
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return;
    if (std::chrono::steady_clock::now() > end) {
      spdlog::warn("another process has been fetching {} for {} s; this process fetches it, too",
                   name, std::chrono::duration_cast<std::chrono::seconds>(patience).count());
      return;
    }
    std::this_thread::sleep_for(kAskAgainAfter);
  }
}

}  // namespace leeway
