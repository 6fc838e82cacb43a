// Preloaded by machines.py, imitates a file system that lacks calls. LEEWAY_ODD_SYNC: the errno of
// fsync on folders. LEEWAY_ODD_TYPE: the type of all file systems, as statfs gives it.
// LEEWAY_ODD_LOCK: the errno of flock.
#include <cerrno>
#include <cstdlib>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace {

long Setting(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? 0 : strtol(text, nullptr, 0);
}

int Refuse(long error) {
  errno = static_cast<int>(error);
  return -1;
}

}  // namespace

extern "C" int fsync(int file) {
  struct stat found;
  const long error = Setting("LEEWAY_ODD_SYNC");
  if (error != 0 && fstat(file, &found) == 0 && S_ISDIR(found.st_mode)) return Refuse(error);
  return static_cast<int>(syscall(SYS_fsync, file));
}

extern "C" int statfs(const char* path, struct statfs* found) noexcept {
  const int result = static_cast<int>(syscall(SYS_statfs, path, found));
  if (const long type = Setting("LEEWAY_ODD_TYPE"); type != 0) found->f_type = type;
  return result;
}

extern "C" int flock(int file, int operation) noexcept {
  if (const long error = Setting("LEEWAY_ODD_LOCK"); error != 0) return Refuse(error);
  return static_cast<int>(syscall(SYS_flock, file, operation));
}
