#include "worker/data/sources/job_files.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/object_store/address.h"
#include "worker/data/data_folder.h"

namespace leeway {
namespace {

// Returns a path in its normal form. The location of an object is not changed: a location with dots
// or empty parts cannot be opened (ParseObjectLocation).
std::string Normal(const std::string& path) {
  if (IsObjectLocation(path)) return path;
  std::error_code error;
  return std::filesystem::absolute(path, error).lexically_normal().string();
}

}  // namespace

std::vector<std::string> FilesOf(const v1::Source& source) {
  const auto list = [](const auto& files) {
    return std::vector<std::string>(files.begin(), files.end());
  };
  switch (source.type_case()) {
    case v1::Source::kIdx:
      return {source.idx().images(), source.idx().labels()};
    case v1::Source::kCifar10:
      return list(source.cifar10().files());
    case v1::Source::kCifar100:
      return list(source.cifar100().files());
    case v1::Source::kNumpy:
      return {source.numpy().features(), source.numpy().labels()};
    case v1::Source::kImageFolder:
      return {source.image_folder().folder()};
    case v1::Source::kCsv:
      return list(source.csv().files());
    case v1::Source::kLibsvm:
      return list(source.libsvm().files());
    case v1::Source::kText: {
      std::vector<std::string> files = list(source.text().files());
      if (source.text().has_vocabulary()) files.push_back(source.text().vocabulary());
      return files;
    }
    default:
      break;
  }
  return {};
}

std::vector<std::string> DataFileNames(const v1::TrainingJob& job) {
  std::vector<std::string> names = FilesOf(job.data().train());
  for (std::string& name : FilesOf(job.data().test())) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> FileNames(const v1::TrainingJob& job) {
  std::vector<std::string> names = DataFileNames(job);
  if (job.model().has_initial()) names.push_back(job.model().initial());
  return names;
}

absl::Status CheckInDataFolder(const v1::TrainingJob& job, const std::string& data_dir) {
  std::string folder = Normal(data_dir);
  if (!absl::EndsWith(folder, "/")) folder += "/";
  for (const std::string& name : FileNames(job)) {
    if (!IsAbsoluteData(name) || absl::StartsWith(Normal(name), folder)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the job reads ", name, ", which is not in this worker's data folder ", folder,
        ": put it there and name it in the job relative to that folder; or start the worker with "
        "--absolute-paths, which lets the job read any file that this user can read"));
  }
  return absl::OkStatus();
}

}  // namespace leeway
