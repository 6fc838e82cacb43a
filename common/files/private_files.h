// Files that only this process's user can read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// Folders that this process and its children make from now on are 0700, files 0600.
void KeepFilesPrivate();

// The same, and `folder`, which is there, is 0700 and nobody else's.
absl::Status KeepFolderPrivate(const std::string& folder);

// WriteFileAtomically, with folders above it, as 0600 and 0700. While it writes, so are all files
// that this process makes.
absl::Status WritePrivateFile(const std::string& path, std::string_view content);

}  // namespace leeway
