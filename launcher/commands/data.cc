// leeway data: describes data files, and prints the part of a job that reads them.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/object_store/address.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "launcher/commands/command_support.h"
#include "launcher/commands/commands.h"
#include "launcher/inspect/inspect.h"
#include "launcher/plan/data_files.h"

namespace leeway {
namespace {

struct DataFlags {
  std::vector<std::string> files;
  std::string data;
  std::string label;
};

// The data folder and the names of the files in it. With --data the FILE arguments are names in
// that folder. Without --data they are paths, and the data folder is the folder of the first file.
// If that file does not exist, the arguments are names in the data folder of jobs.
struct PlacedFiles {
  std::string data_dir;
  std::vector<std::string> names;
};

// Treats `files` as names in the data folder of jobs.
absl::StatusOr<PlacedFiles> InDataFolder(const std::vector<std::string>& files) {
  ASSIGN_OR_RETURN(const std::string folder, FindDataFolder("", "", v1::TrainingJob()));
  std::error_code error;
  if (std::filesystem::exists(absl::StrCat(folder, "/", files.front()), error)) {
    return PlacedFiles{folder, files};
  }
  return absl::NotFoundError(
      absl::StrCat(files.front(), ": not found, in the current folder or in the data folder ",
                   folder, " (--data DIR or LEEWAY_DATA names another folder)"));
}

// Places files in an object store. The data folder is the s3://BUCKET/PREFIX of the first file.
absl::StatusOr<PlacedFiles> InStore(const std::vector<std::string>& files) {
  PlacedFiles placed;
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string location, NormalLocation(file));
    ASSIGN_OR_RETURN(const ObjectLocation parsed, ParseObjectLocation(location));
    if (placed.data_dir.empty()) {
      const std::string whole = LocationText(parsed.bucket, parsed.key);
      placed.data_dir = whole.substr(0, whole.rfind('/'));
    }
    if (!parsed.key.empty() && absl::StartsWith(location, placed.data_dir + "/")) {
      placed.names.push_back(location.substr(placed.data_dir.size() + 1));
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        file, " is not in the folder of the first file, ", placed.data_dir,
        ": give the data folder with --data, and the names of the files in that folder"));
  }
  return placed;
}

absl::StatusOr<PlacedFiles> Place(const DataFlags& flags) {
  if (!flags.data.empty()) {
    ASSIGN_OR_RETURN(std::string folder, NormalLocation(flags.data));
    return PlacedFiles{std::move(folder), flags.files};
  }
  if (IsObjectLocation(flags.files.front())) return InStore(flags.files);
  PlacedFiles placed;
  std::error_code error;
  if (!std::filesystem::exists(flags.files.front(), error)) {
    return InDataFolder(flags.files);
  }
  for (const std::string& file : flags.files) {
    std::filesystem::path path = std::filesystem::absolute(file, error).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();
    if (placed.data_dir.empty()) placed.data_dir = path.parent_path().string();
    placed.names.push_back(path.lexically_relative(placed.data_dir).string());
    if (placed.names.back().substr(0, 2) != "..") continue;
    return absl::InvalidArgumentError(absl::StrCat(
        file, " is not in the folder of the first file, ", placed.data_dir,
        ": give the data folder with --data, and the names of the files in that folder"));
  }
  return placed;
}

absl::Status Inspect(const DataFlags& flags) {
  ASSIGN_OR_RETURN(const PlacedFiles placed, Place(flags));
  ASSIGN_OR_RETURN(const Inspection inspection,
                   InspectData(placed.data_dir, placed.names, flags.label));
  std::cout << inspection.summary << "\n# The data folder is --data " << placed.data_dir << "\n"
            << inspection.data;
  return absl::OkStatus();
}

}  // namespace

void AddDataCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<DataFlags>();
  CLI::App* command = app.add_subcommand(
      "data", "Describe data files, and print the part of a job that reads them");
  command
      ->add_option("FILE", flags->files,
                   "Files of one source, or a folder of pictures, also as s3://BUCKET/KEY; with "
                   "--data, names in the data folder")
      ->required();
  command
      ->add_option("--data", flags->data,
                   "The data folder; default: the folder of the first FILE, or else that of a job")
      ->type_name("DIR");
  command
      ->add_option("--label", flags->label,
                   "The column of a table's labels: its name, or its number from 0")
      ->type_name("COLUMN");
  command->callback([flags, &exit_code] { exit_code = ShowResult(Inspect(*flags)); });
}

}  // namespace leeway
