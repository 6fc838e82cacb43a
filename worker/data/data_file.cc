#include "worker/data/data_file.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "worker/data/gunzip.h"
#include "worker/data/known_files.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

// Of one read(2), which does not take more than 2 GiB.
constexpr size_t kMaxRead = size_t{1} << 30;

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

absl::Status CheckName(const std::string& name) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("data file '", absl::CEscape(name), "': ", why,
                                                   "; name it relative to the data folder"));
  };
  if (name.empty()) return refuse("the name is empty");
  if (name.find('\0') != std::string::npos) return refuse("the name holds a zero byte");
  if (name[0] == '/') return refuse("the path is absolute");
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return refuse("the path leaves the data folder by '..'");
  }
  return absl::OkStatus();
}

std::string FullPath(const std::string& data_dir, const std::string& name) {
  if (data_dir.empty()) return name;
  return absl::StrCat(data_dir, absl::EndsWith(data_dir, "/") ? "" : "/", name);
}

absl::Status OpenError(int error, const std::string& path, const std::string& data_dir,
                       const std::string& name) {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat(path, ": opening the data file"));
  if (error != ENOENT && error != ENOTDIR) return status;
  const std::string advice = HowToFetch(name);
  return absl::NotFoundError(absl::StrCat(
      path, ": no such file", advice.empty() ? "" : "; ", advice, "; the data folder is '",
      data_dir.empty() ? "." : data_dir, "', given by --data DIR or LEEWAY_DATA"));
}

absl::StatusOr<std::vector<uint8_t>> ReadAll(int descriptor, const std::string& path) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  const uint64_t size = static_cast<uint64_t>(info.st_size);
  if (size > kMaxFileBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": has ", size,
                                                     " bytes; a data file may have ", kMaxFileBytes,
                                                     " (several files may be named)"));
  }
  std::vector<uint8_t> bytes(size);
  size_t read = 0;
  while (read < size) {
    const ssize_t count = ::read(descriptor, bytes.data() + read, std::min(size - read, kMaxRead));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      return absl::ErrnoToStatus(errno, absl::StrCat(path, ": reading at byte ", read));
    if (count == 0) {
      return absl::DataLossError(absl::StrCat(path, ": byte ", read, ": shrank while it was read"));
    }
    read += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

absl::StatusOr<DataFile> ReadDataFile(const std::string& data_dir, const std::string& name) {
  RETURN_IF_ERROR(CheckName(name));
  DataFile file{FullPath(data_dir, name), {}};
  // Not to wait for the writer of a pipe of that name.
  const Descriptor descriptor(open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.number() < 0) return OpenError(errno, file.path, data_dir, name);
  ASSIGN_OR_RETURN(file.bytes, ReadAll(descriptor.number(), file.path));
  if (IsGzip(file.bytes)) {
    ASSIGN_OR_RETURN(file.bytes, Gunzip(file.bytes, file.path, kMaxFileBytes));
  }
  if (file.bytes.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": the file is empty"));
  }
  return file;
}

}  // namespace leeway
