// Files that only this process's user can read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leeway {

// From now on this process and its children make folders with mode 0700 and files with mode 0600.
void KeepFilesPrivate();

// Does the same as KeepFilesPrivate, and changes the mode of the existing `folder` to 0700.
absl::Status KeepFolderPrivate(const std::string& folder);

// Does the same as WriteFileAtomically, but the file gets mode 0600, and new folders above it get
// mode 0700. During the call these modes apply to all files and folders that this process makes.
absl::Status WritePrivateFile(const std::string& path, std::string_view content);

}  // namespace leeway
