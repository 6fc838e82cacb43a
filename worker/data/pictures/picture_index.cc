#include "worker/data/pictures/picture_index.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "common/status.h"
#include "worker/data/data_folder.h"
#include "worker/data/examples.h"

namespace leeway {
namespace {

bool IsPicture(const std::string& name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return absl::EndsWith(lower, ".jpg") || absl::EndsWith(lower, ".jpeg") ||
         absl::EndsWith(lower, ".png");
}

absl::Status AddClass(const std::string& data_dir, const std::string& folder, float label,
                      PictureIndex& index) {
  ASSIGN_OR_RETURN(DataEntries entries, ListDataFolder(data_dir, folder));
  if (!entries.folders.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder, ": contains the folder ", entries.folders[0],
                     "; move all pictures of a class into the folder of the class"));
  }
  const size_t before = index.files.size();
  for (const std::string& name : entries.files) {
    if (IsPicture(name)) index.files.push_back(absl::StrCat(folder, "/", name));
  }
  if (index.files.size() == before) {
    return absl::InvalidArgumentError(
        absl::StrCat(folder,
                     ": has no picture (.jpg, .jpeg, .png) of this class; remove the folder, "
                     "or add pictures"));
  }
  index.labels.resize(index.files.size(), label);
  return CheckSize(index.files.size(), 1, 1, folder);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClassFolders(const std::string& data_dir,
                                                      const std::string& folder) {
  ASSIGN_OR_RETURN(DataEntries entries, ListDataFolder(data_dir, folder));
  if (!entries.folders.empty()) return std::move(entries.folders);
  return absl::InvalidArgumentError(absl::StrCat(
      folder, ": has no folders; it needs one for each class, with the pictures of the class"));
}

absl::StatusOr<PictureIndex> IndexPictures(const std::string& data_dir, const std::string& folder,
                                           const std::vector<std::string>& classes,
                                           const LabelRule& rule) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ClassFolders(data_dir, folder));
  PictureIndex index;
  for (const std::string& name : names) {
    const std::string of_class = absl::StrCat(folder, "/", name);
    const auto found = std::lower_bound(classes.begin(), classes.end(), name);
    if (found == classes.end() || *found != name) {
      return absl::InvalidArgumentError(
          absl::StrCat(of_class, ": the training pictures have no class of this name"));
    }
    const absl::StatusOr<float> label =
        CheckLabel(static_cast<double>(found - classes.begin()), rule);
    if (!label.ok()) return Annotate(label.status(), of_class);
    RETURN_IF_ERROR(AddClass(data_dir, of_class, *label, index));
  }
  return index;
}

}  // namespace leeway
