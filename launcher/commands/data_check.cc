#include "launcher/commands/data_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/data/known_files.h"
#include "worker/data/sources/job_files.h"

namespace leeway {

bool ReadsDataFolder(const v1::TrainingJob& job) {
  const std::vector<std::string> names = FileNames(job);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return !IsAbsoluteData(name); });
}

bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir) {
  const std::vector<std::string> names = FileNames(job);
  return IsObjectLocation(data_dir) || std::any_of(names.begin(), names.end(), IsObjectLocation);
}

absl::Status CheckDataFiles(const v1::TrainingJob& job, const std::string& data_dir) {
  std::string missing;
  for (const std::string& name : DataFileNames(job)) {
    if (PathOfData(data_dir, name).ok()) {
      ASSIGN_OR_RETURN(const DataKind kind, KindOfData(data_dir, name));
      if (kind != DataKind::kNothing) continue;
    }
    const std::string advice = HowToFetch(name);
    absl::StrAppend(&missing, "\n  ", name, advice.empty() ? "" : ": ", advice);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::NotFoundError(
      absl::StrCat("files of the job are missing in the data folder ", data_dir,
                   " (--data DIR or LEEWAY_DATA names another folder):", missing));
}

}  // namespace leeway
