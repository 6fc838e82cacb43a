#include "launcher/commands/data_check.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/data/data_file.h"
#include "worker/data/known_files.h"
#include "worker/data/sources/job_files.h"

namespace leeway {

bool ReadsDataFolder(const v1::TrainingJob& job) {
  const std::vector<std::string> names = FileNames(job);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return !absl::StartsWith(name, "/"); });
}

absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir) {
  std::string missing;
  for (const std::string& name : DataFileNames(job)) {
    std::error_code error;
    const auto path = PathOfData(data_dir, name);
    if (path.ok() && std::filesystem::exists(*path, error)) continue;
    const std::string advice = HowToFetch(name);
    absl::StrAppend(&missing, "\n  ", name, advice.empty() ? "" : ": ", advice);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("files of the job are not there; the data folder is ",
                                          data_dir,
                                          " (--data DIR or LEEWAY_DATA names another):", missing));
}

}  // namespace leeway
