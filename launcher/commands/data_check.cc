#include "launcher/commands/data_check.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "config/external.h"
#include "worker/data/known_files.h"

namespace leeway {
namespace {

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

}  // namespace

std::vector<std::string> DataFileNames(const v1::TrainingJob& job) {
  std::vector<std::string> names = FilesOf(job.data().train());
  for (std::string& name : FilesOf(job.data().test())) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

bool ReadsFiles(const v1::TrainingJob& job) {
  if (IsExternal(job)) return false;
  const auto reads = [](const v1::Source& source) { return !source.has_generator(); };
  return reads(job.data().train()) || (job.data().has_test() && reads(job.data().test())) ||
         job.model().has_initial();
}

absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir) {
  std::string missing;
  for (const std::string& name : DataFileNames(job)) {
    std::error_code error;
    if (std::filesystem::exists(absl::StrCat(data_dir, "/", name), error)) continue;
    const std::string advice = HowToFetch(name);
    absl::StrAppend(&missing, "\n  ", name, advice.empty() ? "" : ": ", advice);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("files of the job are not in the data folder ", data_dir,
                                          " (--data DIR or LEEWAY_DATA names another):", missing));
}

}  // namespace leeway
