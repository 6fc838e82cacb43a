// A folder that is held by its descriptor: whether what its path leads to is still the same one.
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
  // NOT_FOUND once it was removed or moved, also where another folder has its name by now.
  absl::Status CheckThere() const;

 private:
  OpenFolder(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::string path_;
  Descriptor descriptor_;
};

}  // namespace leeway
