#include "run/metrics_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kReadBytes = 64 << 10;

// Returns the number of bytes at the beginning of the file that are whole lines.
absl::StatusOr<uint64_t> WholeLines(const std::string& path) {
  ASSIGN_OR_RETURN(const FileReader file, FileReader::Open(path));
  std::vector<uint8_t> chunk;
  for (uint64_t end = file.size(); end > 0; end -= chunk.size()) {
    chunk.resize(std::min(kReadBytes, end));
    RETURN_IF_ERROR(file.ReadAt(end - chunk.size(), chunk));
    const auto last = std::find(chunk.rbegin(), chunk.rend(), '\n');
    if (last != chunk.rend()) return end - static_cast<uint64_t>(last - chunk.rbegin());
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsLog>> MetricsFile::Open(const std::string& path) {
  const size_t slash = path.rfind('/');
  ASSIGN_OR_RETURN(OpenFolder folder,
                   OpenFolder::Open(slash == std::string::npos ? "." : path.substr(0, slash + 1)));
  std::unique_ptr<MetricsFile> log(new MetricsFile(path, std::move(folder)));
  RETURN_IF_ERROR(log->OpenFile());
  return log;
}

absl::Status MetricsFile::OpenFile() {
  // With O_NONBLOCK, a pipe at this path does not block here, and is refused below.
  file_.emplace(
      open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666));
  if (**file_ < 0) return Error("opening");
  const auto whole = WholeLines(path_);
  RETURN_IF_ERROR(Annotate(whole.status(), "opening the metrics"));
  // Cut off a broken last line, because the next line would continue it.
  return ftruncate(**file_, static_cast<off_t>(*whole)) == 0
             ? absl::OkStatus()
             : Error("dropping the broken last line of");
}

absl::Status MetricsFile::Error(const char* doing) const {
  return absl::UnavailableError(absl::StrCat(doing, " ", path_, ": ", std::strerror(errno)));
}

absl::Status MetricsFile::Append(const std::string& lines) {
  RETURN_IF_ERROR(folder_.CheckThere());
  struct stat found;
  if (fstat(**file_, &found) != 0 || found.st_nlink == 0) RETURN_IF_ERROR(OpenFile());
  if (fstat(**file_, &found) != 0) return Error("examining");
  for (size_t done = 0; done < lines.size();) {
    const ssize_t written = write(**file_, lines.data() + done, lines.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written >= 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    const absl::Status status = Error("writing to");
    // Remove the half line that a full disk leaves, because the next line would continue it.
    if (ftruncate(**file_, found.st_size) != 0) return Error("dropping half a line of");
    return status;
  }
  return absl::OkStatus();
}

}  // namespace leeway
