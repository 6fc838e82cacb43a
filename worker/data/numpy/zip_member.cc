#include "worker/data/numpy/zip_member.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <zip.h>

#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/data/limits.h"

namespace leeway {
namespace {

struct CloseArchive {
  // The archive is only read, so there is nothing to write back.
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using ArchiveMember = std::unique_ptr<zip_file_t, CloseMember>;

// The largest number of bytes of one zip_fread, whose count is signed.
constexpr size_t kMaxMemberRead = size_t{1} << 30;

absl::StatusOr<Archive> OpenArchive(const std::string& data_dir, const std::string& name) {
  // Opens the file first, so that a missing file causes the same errors as for other data files.
  ASSIGN_OR_RETURN(const DataFile file, OpenDataFile(data_dir, name));
  int code = 0;
  Archive archive(zip_open(file.path.c_str(), ZIP_RDONLY, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const absl::Status status = absl::InvalidArgumentError(absl::StrCat(
      file.path,
      ": an .npz file must be a zip archive, but this file is damaged or not a zip archive: ",
      zip_error_strerror(&error)));
  zip_error_fini(&error);
  return status;
}

std::vector<std::string> NamesOf(zip_t* archive) {
  std::vector<std::string> names;
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* const name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    if (name != nullptr) names.emplace_back(name);
  }
  return names;
}

class ZipStream final : public ByteStream {
 public:
  ZipStream(Archive archive, zip_uint64_t index, std::string path)
      : archive_(std::move(archive)), index_(index), path_(std::move(path)) {}

  absl::Status Rewind() override {
    member_.reset(zip_fopen_index(archive_.get(), index_, 0));
    at_ = 0;
    if (member_ != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": cannot be unpacked: ", zip_strerror(archive_.get()),
                     "; save it with numpy.savez or numpy.savez_compressed"));
  }

  absl::StatusOr<size_t> Read(std::span<uint8_t> out) override {
    size_t done = 0;
    while (done < out.size()) {
      const size_t wanted = std::min(out.size() - done, kMaxMemberRead);
      const zip_int64_t count = zip_fread(member_.get(), out.data() + done, wanted);
      if (count < 0) {
        return absl::DataLossError(absl::StrCat(path_, ": byte ", at_, ": damaged (",
                                                zip_file_strerror(member_.get()),
                                                "); fetch it again"));
      }
      if (count == 0) break;
      done += static_cast<size_t>(count);
      at_ += static_cast<uint64_t>(count);
      if (at_ > kMaxFileBytes) {
        return absl::ResourceExhaustedError(absl::StrCat(path_, ": unpacks to more than the ",
                                                         kMaxFileBytes,
                                                         " bytes that a data file may have"));
      }
    }
    return done;
  }

 private:
  const Archive archive_;
  const zip_uint64_t index_;
  const std::string path_;
  ArchiveMember member_;
  uint64_t at_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ZipNames(const std::string& data_dir,
                                                  const std::string& name) {
  ASSIGN_OR_RETURN(const Archive archive, OpenArchive(data_dir, name));
  return NamesOf(archive.get());
}

absl::StatusOr<DataFile> OpenZipMember(const std::string& data_dir, const std::string& name,
                                       const std::string& member) {
  ASSIGN_OR_RETURN(Archive archive, OpenArchive(data_dir, name));
  const zip_int64_t index = zip_name_locate(archive.get(), member.c_str(), 0);
  if (index < 0) {
    return absl::NotFoundError(absl::StrCat(name, ": has no array ", member, "; it has ",
                                            absl::StrJoin(NamesOf(archive.get()), ", ")));
  }
  const std::string path = absl::StrCat(name, "(", member, ")");
  auto stream =
      std::make_unique<ZipStream>(std::move(archive), static_cast<zip_uint64_t>(index), path);
  RETURN_IF_ERROR(stream->Rewind());
  return DataFile{path, std::move(stream)};
}

}  // namespace leeway
