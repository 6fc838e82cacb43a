#include "launcher/plan/data_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/object_store/address.h"
#include "common/process/process.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/data/known_files.h"
#include "worker/data/sources/job_files.h"

namespace leeway {
namespace {

namespace fs = std::filesystem;

bool IsDataFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

std::string CanonicalPath(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path.string() : absolute.string();
}

absl::StatusOr<std::string> GivenFolder(const std::string& path, absl::string_view by) {
  // Reading the job's files will show whether an object location exists.
  if (IsObjectLocation(path)) {
    absl::StatusOr<std::string> location = NormalLocation(path);
    return location.ok() ? location : Annotate(location.status(), by);
  }
  if (IsDataFolder(path)) return CanonicalPath(path);
  return absl::NotFoundError(absl::StrCat("the data folder ", path, " (", by, ") does not exist"));
}

}  // namespace

bool ReadsDataFolder(const v1::TrainingJob& job) {
  const std::vector<std::string> names = FileNames(job);
  return std::any_of(names.begin(), names.end(),
                     [](const std::string& name) { return !IsAbsoluteData(name); });
}

bool ReadsStore(const v1::TrainingJob& job, const std::string& data_dir) {
  const std::vector<std::string> names = FileNames(job);
  return IsObjectLocation(data_dir) || std::any_of(names.begin(), names.end(), IsObjectLocation);
}

absl::StatusOr<std::string> FindDataFolder(const std::string& option, const std::string& job_file,
                                           const v1::TrainingJob& job) {
  if (!option.empty()) return GivenFolder(option, "--data");
  if (const char* variable = std::getenv("LEEWAY_DATA"); variable != nullptr && *variable != 0) {
    return GivenFolder(variable, "LEEWAY_DATA");
  }
  std::vector<std::string> candidates = {"data"};
  if (!job_file.empty() && !IsObjectLocation(job_file)) {
    std::error_code error;
    const fs::path absolute = fs::absolute(job_file, error);
    const fs::path beside = (error ? fs::path(job_file) : absolute).parent_path();
    candidates.push_back((beside / "data").string());
    candidates.push_back((beside.parent_path() / "data").string());
  }
  candidates.push_back(CanonicalPath(fs::path(ProgramFolder()) / "../share/leeway/data"));
  for (const std::string& candidate : candidates) {
    if (IsDataFolder(candidate)) return CanonicalPath(candidate);
  }
  if (!ReadsDataFolder(job)) return CanonicalPath(".");
  return absl::NotFoundError(
      absl::StrCat("no data folder: give --data DIR or LEEWAY_DATA (looked at ",
                   absl::StrJoin(candidates, ", "), ")"));
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
