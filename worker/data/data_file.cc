#include "worker/data/data_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/data/gunzip.h"
#include "worker/data/known_files.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

// The largest number of bytes of one read(2), which reads at most 2 GiB.
constexpr size_t kMaxRead = size_t{1} << 30;
// The size of the first piece when a file is unpacked. Each later piece is as long as all earlier
// pieces together.
constexpr size_t kFirstPiece = 1 << 20;
constexpr std::string_view kGzipMagic = "\x1f\x8b";

absl::Status OpenError(int error, const std::string& path, const std::string& data_dir,
                       const std::string& name) {
  const absl::Status status =
      absl::ErrnoToStatus(error, absl::StrCat(path, ": opening the data file"));
  if (error != ENOENT && error != ENOTDIR) return status;
  const std::string advice = HowToFetch(name);
  return absl::NotFoundError(absl::StrCat(
      path, ": no such file", advice.empty() ? "" : "; ", advice, "; the data folder is '",
      data_dir.empty() ? "." : data_dir, "', set by --data DIR or LEEWAY_DATA"));
}

// An open regular file of the data folder.
struct OpenFile {
  Descriptor descriptor;
  std::string path;
  uint64_t size;
};

absl::StatusOr<OpenFile> OpenPlainFile(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(const std::string path, PathOfData(data_dir, name));
  ASSIGN_OR_RETURN(const std::string here, PathHere(path));
  // O_NONBLOCK avoids waiting for a writer if the name is a pipe.
  Descriptor descriptor(open(here.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (*descriptor < 0) return OpenError(errno, path, data_dir, name);
  struct stat info;
  if (fstat(*descriptor, &info) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  }
  return OpenFile{std::move(descriptor), path, static_cast<uint64_t>(info.st_size)};
}

// Reads a file whose size must not change.
class FileStream final : public ByteStream {
 public:
  explicit FileStream(OpenFile file)
      : file_(std::move(file.descriptor)), path_(std::move(file.path)), size_(file.size) {}

  absl::StatusOr<size_t> Read(std::span<uint8_t> out) override {
    const size_t wanted = std::min<uint64_t>(out.size(), size_ - at_);
    size_t done = 0;
    while (done < wanted) {
      const ssize_t count =
          pread(*file_, out.data() + done, std::min(wanted - done, kMaxRead), Offset());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        return absl::ErrnoToStatus(errno, absl::StrCat(path_, ": reading at byte ", at_));
      if (count == 0) {
        return absl::DataLossError(
            absl::StrCat(path_, ": byte ", at_, ": the file shrank while it was read"));
      }
      done += static_cast<size_t>(count);
      at_ += static_cast<uint64_t>(count);
    }
    return done;
  }

  absl::Status Rewind() override {
    at_ = 0;
    return absl::OkStatus();
  }

 private:
  off_t Offset() const { return static_cast<off_t>(at_); }

  const Descriptor file_;
  const std::string path_;
  const uint64_t size_;
  uint64_t at_ = 0;
};

// Returns true if the content of `stream` is gzip. The stream is at its start before and after the
// call.
absl::StatusOr<bool> IsGzip(ByteStream& stream) {
  uint8_t magic[2];
  ASSIGN_OR_RETURN(const size_t count, stream.Read(magic));
  RETURN_IF_ERROR(stream.Rewind());
  return std::string_view(reinterpret_cast<const char*>(magic), count) == kGzipMagic;
}

absl::Status EmptyError(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
}

absl::Status CheckNotEmpty(DataFile& file) {
  uint8_t first[1];
  ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(first));
  if (count == 0) return EmptyError(file.path);
  return file.bytes->Rewind();
}

// Reads all of `stream`, which is expected to have about `expected` bytes.
absl::StatusOr<std::string> ReadWhole(ByteStream& stream, size_t expected, uint64_t max_bytes,
                                      const std::string& path) {
  std::string all;
  while (true) {
    const size_t old = all.size();
    if (old > max_bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat(path, ": has more than the ", max_bytes, " bytes allowed"));
    }
    all.resize(old + std::max(old, expected));
    const std::span room(reinterpret_cast<uint8_t*>(all.data()) + old, all.size() - old);
    ASSIGN_OR_RETURN(const size_t count, stream.Read(room));
    if (count == room.size()) continue;
    all.resize(old + count);
    all.shrink_to_fit();
    return all;
  }
}

}  // namespace

absl::Status BadByte(const DataFile& file, uint64_t byte, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": byte ", byte, ": ", what));
}

absl::StatusOr<DataFile> OpenDataFile(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(OpenFile opened, OpenPlainFile(data_dir, name));
  const std::string path = opened.path;
  if (opened.size > kMaxFileBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": has ", opened.size, " bytes, but a data file may have ",
                     kMaxFileBytes, "; split it into several files"));
  }
  auto stream = std::make_unique<FileStream>(std::move(opened));
  ASSIGN_OR_RETURN(const bool packed, IsGzip(*stream));
  DataFile file{path, std::move(stream)};
  if (packed) {
    file.bytes = std::make_unique<GunzipStream>(std::move(file.bytes), path, kMaxFileBytes);
  }
  RETURN_IF_ERROR(CheckNotEmpty(file));
  return file;
}

absl::StatusOr<MappedFile> MapDataFile(const std::string& data_dir, const std::string& name) {
  ASSIGN_OR_RETURN(OpenFile opened, OpenPlainFile(data_dir, name));
  const std::string path = opened.path;
  if (opened.size == 0) return EmptyError(path);
  ASSIGN_OR_RETURN(FileContent content, FileContent::Map(*opened.descriptor, opened.size, path));
  if (content.bytes().substr(0, kGzipMagic.size()) != kGzipMagic)
    return MappedFile{path, std::move(content)};
  GunzipStream stream(std::make_unique<FileStream>(std::move(opened)), path, kMaxFileBytes);
  ASSIGN_OR_RETURN(std::string unpacked, ReadWhole(stream, kFirstPiece, kMaxFileBytes, path));
  if (unpacked.empty()) return EmptyError(path);
  return MappedFile{path, FileContent(std::move(unpacked))};
}

absl::StatusOr<MappedFile> ReadDataFile(const std::string& data_dir, const std::string& name,
                                        uint64_t max_bytes) {
  ASSIGN_OR_RETURN(OpenFile opened, OpenPlainFile(data_dir, name));
  const std::string path = opened.path;
  std::string content(std::min(opened.size, max_bytes), '\0');
  FileStream stream(std::move(opened));
  const std::span room(reinterpret_cast<uint8_t*>(content.data()), content.size());
  ASSIGN_OR_RETURN(const size_t count, stream.Read(room));
  content.resize(count);
  return MappedFile{path, FileContent(std::move(content))};
}

}  // namespace leeway
