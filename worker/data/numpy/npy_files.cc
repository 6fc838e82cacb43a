#include "worker/data/numpy/npy_files.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "common/job_key.h"
#include "common/status.h"
#include "worker/data/data_file.h"
#include "worker/data/numpy/npy_array.h"
#include "worker/data/numpy/zip_member.h"

namespace leeway {
namespace {

constexpr std::string_view kZip = "PK\x03\x04";
constexpr char kSuffix[] = ".npy";

absl::StatusOr<bool> IsZip(DataFile& file) {
  uint8_t magic[kZip.size()];
  ASSIGN_OR_RETURN(const size_t count, file.bytes->Read(magic));
  RETURN_IF_ERROR(file.bytes->Rewind());
  return std::string_view(reinterpret_cast<const char*>(magic), count) == kZip;
}

// Opens the array `array` of the archive `name`. If `array` is empty, the archive must have exactly
// one array.
absl::StatusOr<DataFile> OpenArray(const std::string& data_dir, const std::string& name,
                                   const std::string& array) {
  if (!array.empty()) return OpenZipMember(data_dir, name, array + kSuffix);
  ASSIGN_OR_RETURN(const std::vector<std::string> members, ZipNames(data_dir, name));
  if (members.size() == 1) return OpenZipMember(data_dir, name, members[0]);
  return absl::InvalidArgumentError(absl::StrCat(
      name, ": has ", members.size(), " arrays; name one of them: ",
      absl::StrJoin(members, ", ", [](std::string* out, const std::string& member) {
        const bool npy = absl::EndsWith(member, kSuffix);
        out->append(npy ? member.substr(0, member.size() - sizeof(kSuffix) + 1) : member);
      })));
}

// Opens a file or an array of an archive. Errors are at the keys `file_key` and `array_key`.
absl::StatusOr<DataFile> OpenNpy(const std::string& data_dir, const std::string& name,
                                 const std::string& array, const char* file_key,
                                 const char* array_key) {
  absl::StatusOr<DataFile> file = OpenDataFile(data_dir, name);
  if (!file.ok()) return AtKey(file.status(), file_key);
  ASSIGN_OR_RETURN(const bool zip, IsZip(*file));
  if (zip) {
    file = OpenArray(data_dir, name, array);
    if (!file.ok()) return AtKey(file.status(), array_key);
  } else if (!array.empty()) {
    return AtKey(absl::InvalidArgumentError(absl::StrCat(
                     name, ": is not an .npz, so its array has no name; remove the key")),
                 array_key);
  }
  return file;
}

}  // namespace

absl::StatusOr<Examples> ReadNumpy(const v1::Numpy& source, const std::string& data_dir,
                                   const LabelRule& rule) {
  ASSIGN_OR_RETURN(DataFile features, OpenNpy(data_dir, source.features(), source.features_array(),
                                              "features", "features_array"));
  ASSIGN_OR_RETURN(DataFile labels, OpenNpy(data_dir, source.labels(), source.labels_array(),
                                            "labels", "labels_array"));
  return ParseNpy(std::move(features), std::move(labels), rule);
}

}  // namespace leeway
