// Files that only this process's user can read.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace leeway {

// Folders that this process and its children make from now on are 0700, files 0600.
void KeepFilesPrivate();

// The same, and `folder`, which is there, is 0700 and nobody else's.
absl::Status KeepFolderPrivate(const std::string& folder);

}  // namespace leeway
