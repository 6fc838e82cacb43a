// Keeps a folder open by a descriptor, to detect when its path no longer leads to the folder.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/descriptor.h"

namespace leeway {

class OpenFolder {
 public:
  static absl::StatusOr<OpenFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  int number() const { return *descriptor_; }
  // Returns NOT_FOUND if the folder was removed or moved, even if another folder now has its path.
  absl::Status CheckThere() const;

 private:
  OpenFolder(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  Descriptor descriptor_;
};

}  // namespace leeway
