// A file within a zip archive, such as an array of an .npz.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

// The names of what is in the archive `name` of the data folder. INVALID_ARGUMENT if it is no zip.
absl::StatusOr<std::vector<std::string>> ZipNames(const std::string& data_dir,
                                                  const std::string& name);

// `member` of the archive, unpacked as it is read, stored or deflated; its path in errors is
// ARCHIVE(MEMBER). NOT_FOUND if it is not there. Reading gives DATA_LOSS for what is damaged, and
// verifies the checksum at the end.
absl::StatusOr<DataFile> OpenZipMember(const std::string& data_dir, const std::string& name,
                                       const std::string& member);

}  // namespace leeway
