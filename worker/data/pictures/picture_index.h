// Which pictures a folder has, and of which classes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/labels.h"

namespace leeway {

// Sorted by the names of folders and files, so that it is the same everywhere.
struct PictureIndex {
  // Relative to the data folder.
  std::vector<std::string> files;
  // A label for each.
  std::vector<float> labels;
};

// The names of the folders in `folder`, sorted: class i is number i. What begins with '.' does not
// count. INVALID_ARGUMENT if there is none.
absl::StatusOr<std::vector<std::string>> ClassFolders(const std::string& data_dir,
                                                      const std::string& folder);

// The files .jpg, .jpeg and .png, in capitals or not, of each class folder of `folder`. Other files
// are no examples. INVALID_ARGUMENT for a class that is not among `classes`, or has no pictures or
// folders of its own, and as CheckLabel says.
absl::StatusOr<PictureIndex> IndexPictures(const std::string& data_dir, const std::string& folder,
                                           const std::vector<std::string>& classes,
                                           const LabelRule& rule);

}  // namespace leeway
