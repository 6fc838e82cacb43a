#include "common/files/files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

// The size of the buffer that gathers small appends. An append of at least this size is written
// directly.
constexpr size_t kBufferBytes = 64 << 10;

absl::Status SystemError(int error, std::string_view doing, const std::string& path) {
  return absl::ErrnoToStatus(
      error, absl::StrCat(absl::string_view(doing.data(), doing.size()), " '", path, "'"));
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Returns whether the folder is on a local file system, so that EIO means an error of the disk.
// Network and shared file systems (CIFS, vboxsf, 9p, FUSE) also return EIO if they cannot sync a
// folder.
bool IsOnDisk(const std::string& folder) {
  struct statfs found;
  if (statfs(folder.c_str(), &found) != 0) return true;
  constexpr int64_t kDisks[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                F2FS_SUPER_MAGIC, TMPFS_MAGIC,     OVERLAYFS_SUPER_MAGIC};
  return std::find(std::begin(kDisks), std::end(kDisks), found.f_type) != std::end(kDisks);
}

// Returns whether the error only means that this file system cannot sync folders.
bool CannotSync(int error, const std::string& folder) {
  switch (error) {
    case EINVAL:
    case ENOSYS:
    case EOPNOTSUPP:
      return true;
    case EIO:
      return !IsOnDisk(folder);
    default:
      return false;
  }
}

// Logs a warning, once for the whole process.
void WarnOfSync(const std::string& folder, const char* call, int error) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  spdlog::warn("{} of folder '{}': {}; files written there may be missing after a power cut", call,
               folder, strerror(error));
}

// Syncs the folder if the file system can do that, so that new and removed names in it are durable.
absl::Status SyncFolder(const std::string& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) {
    // A user may have permission to write into a folder but not to read it.
    if (errno != EACCES && errno != EPERM) return SystemError(errno, "opening folder", folder);
    WarnOfSync(folder, "open", errno);
    return absl::OkStatus();
  }
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  if (error == 0) return absl::OkStatus();
  if (!CannotSync(error, folder)) return SystemError(error, "syncing folder", folder);
  WarnOfSync(folder, "fsync", error);
  return absl::OkStatus();
}

// The most links that are followed, as in the kernel.
constexpr int kLinksMax = 40;

// Returns the path at the end of a chain of symbolic links, even if no file exists there.
absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::string end = path;
  for (int followed = 0; followed < kLinksMax; ++followed) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(end, error);
    if (error) return end;
    end = next.is_absolute() ? next.string() : FolderOf(end) + "/" + next.string();
  }
  return SystemError(ELOOP, "following", path);
}

// If this process's standard output or error goes to `path`, returns its descriptor. The caller
// must use this descriptor and not open the path again, because opening would overwrite a file to
// which a shell redirected the output, and because a socket cannot be opened.
std::optional<int> OwnOutputAt(const std::string& path) {
  struct stat found;
  if (stat(path.c_str(), &found) != 0) return std::nullopt;
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat own;
    const bool same =
        fstat(output, &own) == 0 && own.st_dev == found.st_dev && own.st_ino == found.st_ino;
    if (same) return output;
  }
  return std::nullopt;
}

// Returns true if the path exists and is not a regular file, such as a device, a pipe or a folder.
bool IsNoFile(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode);
}

// Opens a device or a pipe. If a pipe has no reader, returns an error at once and does not wait for
// a reader.
int OpenAsItIs(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return file;
  const int flags = fcntl(file, F_GETFL);
  if (flags >= 0 && fcntl(file, F_SETFL, flags & ~O_NONBLOCK) == 0) return file;
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

// Returns a name that no other writer in any process uses.
std::string TemporaryName(const std::string& path) {
  static std::atomic<uint64_t> next{0};
  return absl::StrCat(path, ".tmp-", getpid(), "-", next.fetch_add(1));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(FileReader reader, FileReader::Open(path));
  if (reader.size() > max_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("reading '", path, "': the file has ",
                                                     reader.size(), " bytes; at most ", max_bytes,
                                                     " are allowed"));
  }
  std::string content(reader.size(), '\0');
  RETURN_IF_ERROR(reader.ReadAt(0, {reinterpret_cast<uint8_t*>(content.data()), content.size()}));
  return content;
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view content, WriteTo to) {
  ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path, to));
  RETURN_IF_ERROR(writer.Append(content));
  return writer.Finish();
}

absl::Status CheckWritable(const std::string& path) {
  if (path.empty() || OwnOutputAt(path).has_value()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is a folder"));
  }
  ASSIGN_OR_RETURN(const std::string end, FollowLinks(path));
  const std::string changed = IsNoFile(path) ? path : FolderOf(end);
  return access(changed.c_str(), W_OK) == 0 ? absl::OkStatus()
                                            : SystemError(errno, "writing", path);
}

absl::Status MakeFolders(const std::string& path) {
  if (path.empty() || path == "/" || path == ".") return absl::OkStatus();
  const std::string trimmed = path.back() == '/' ? path.substr(0, path.size() - 1) : path;
  struct stat found;
  if (stat(trimmed.c_str(), &found) == 0) {
    return S_ISDIR(found.st_mode) ? absl::OkStatus()
                                  : SystemError(ENOTDIR, "making folder", trimmed);
  }
  RETURN_IF_ERROR(MakeFolders(FolderOf(trimmed)));
  if (mkdir(trimmed.c_str(), 0777) != 0 && errno != EEXIST) {
    return SystemError(errno, "making folder", trimmed);
  }
  return SyncFolder(FolderOf(trimmed));
}

absl::Status RemoveTree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return error ? SystemError(error.value(), "removing", path) : absl::OkStatus();
}

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path, WriteTo to) {
  const bool anything = to == WriteTo::kAnything;
  const std::optional<int> output = anything ? OwnOutputAt(path) : std::nullopt;
  if (output.has_value() || IsNoFile(path)) {
    if (!anything) {
      return absl::FailedPreconditionError(
          absl::StrCat("writing '", path, "': the path exists and is not a regular file"));
    }
    const int file = output.has_value() ? fcntl(*output, F_DUPFD_CLOEXEC, 0) : OpenAsItIs(path);
    if (file < 0) return SystemError(errno, "opening", path);
    return FileWriter(path, "", file);
  }
  ASSIGN_OR_RETURN(std::string end, FollowLinks(path));
  std::string temporary = TemporaryName(end);
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return SystemError(errno, "creating", temporary);
  return FileWriter(std::move(end), std::move(temporary), file);
}

FileWriter::FileWriter(std::string path, std::string temporary, int file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(other.path_),
      temporary_(std::exchange(other.temporary_, "")),
      file_(std::exchange(other.file_, -1)),
      buffer_(std::move(other.buffer_)),
      status_(std::move(other.status_)) {}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

absl::Status FileWriter::Fail(std::string_view doing) {
  status_ = SystemError(errno, doing, path_);
  return status_;
}

absl::Status FileWriter::Append(std::string_view bytes) { return Append(BytesOf(bytes)); }

absl::Status FileWriter::Append(std::span<const uint8_t> bytes) {
  RETURN_IF_ERROR(status_);
  if (buffer_.size() + bytes.size() < kBufferBytes) {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(Flush());
  return Write(bytes.data(), bytes.size());
}

absl::Status FileWriter::Flush() {
  const std::string taken = std::exchange(buffer_, {});
  return Write(reinterpret_cast<const uint8_t*>(taken.data()), taken.size());
}

absl::Status FileWriter::Write(const uint8_t* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(file_, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Fail("writing");
    data += written;
    size -= static_cast<size_t>(written);
  }
  return absl::OkStatus();
}

absl::Status FileWriter::Finish() {
  RETURN_IF_ERROR(status_);
  if (file_ < 0)
    return absl::FailedPreconditionError(absl::StrCat("'", path_, "' is already finished"));
  RETURN_IF_ERROR(Flush());
  if (temporary_.empty()) {
    return close(std::exchange(file_, -1)) == 0 ? absl::OkStatus() : Fail("closing");
  }
  // Sync the file before the rename, because otherwise a power cut may leave the new name without
  // content.
  if (fsync(file_) != 0) return Fail("syncing");
  if (close(std::exchange(file_, -1)) != 0) return Fail("closing");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return Fail("renaming into place");
  temporary_.clear();
  status_ = SyncFolder(FolderOf(path_));
  return status_;
}

absl::StatusOr<FileReader> FileReader::Open(const std::string& path) {
  // With O_NONBLOCK the call does not wait if the path is a pipe. The code below refuses a pipe.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return SystemError(errno, "opening", path);
  struct stat found;
  const int error = fstat(file, &found) != 0 ? errno : S_ISREG(found.st_mode) ? 0 : EISDIR;
  if (error == 0) return FileReader(path, file, static_cast<uint64_t>(found.st_size));
  close(file);
  return error == EISDIR
             ? absl::InvalidArgumentError(absl::StrCat("opening '", path, "': not a regular file"))
             : SystemError(error, "opening", path);
}

FileReader::FileReader(std::string path, int file, uint64_t size)
    : path_(std::move(path)), file_(file), size_(size) {}

FileReader::FileReader(FileReader&& other) noexcept
    : path_(other.path_), file_(std::exchange(other.file_, -1)), size_(other.size_) {}

FileReader::~FileReader() {
  if (file_ >= 0) close(file_);
}

absl::Status FileReader::ReadAt(uint64_t position, std::span<uint8_t> target) const {
  while (!target.empty()) {
    const ssize_t got = pread(file_, target.data(), target.size(), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "reading", path_);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat("reading '", path_, "': the file ends at byte ",
                                              position, ", but ", target.size(),
                                              " more bytes were expected"));
    }
    position += static_cast<uint64_t>(got);
    target = target.subspan(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

}  // namespace leeway
