// Lists the pictures of a folder and their classes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/labels.h"

namespace leeway {

// Sorted by the names of folders and files, so that the index is the same on every machine.
struct PictureIndex {
  // The names of the pictures, relative to the data folder.
  std::vector<std::string> files;
  // One label for each picture.
  std::vector<float> labels;
};

// Returns the names of the folders in `folder`, sorted. Folder i is class i. Names that begin with
// '.' are skipped. Returns INVALID_ARGUMENT if `folder` has no folders.
absl::StatusOr<std::vector<std::string>> ClassFolders(const std::string& data_dir,
                                                      const std::string& folder);

// Lists the files .jpg, .jpeg and .png, in upper or lower case, of each class folder of `folder`.
// Other files are skipped. Returns INVALID_ARGUMENT for a class that is not among `classes`, has no
// pictures, or has folders of its own, and for labels that CheckLabel refuses.
absl::StatusOr<PictureIndex> IndexPictures(const std::string& data_dir, const std::string& folder,
                                           const std::vector<std::string>& classes,
                                           const LabelRule& rule);

}  // namespace leeway
