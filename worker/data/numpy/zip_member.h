// Reads a file within a zip archive, such as an array of an .npz.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

// The names of the files in the archive `name` of the data folder. INVALID_ARGUMENT if it is not a
// zip archive.
absl::StatusOr<std::vector<std::string>> ZipNames(const std::string& data_dir,
                                                  const std::string& name);

// Opens `member` of the archive, stored or deflated. It is unpacked as it is read. Its path in
// errors is ARCHIVE(MEMBER). NOT_FOUND if the archive does not have it. Reading returns DATA_LOSS
// for damaged content, and verifies the checksum at the end.
absl::StatusOr<DataFile> OpenZipMember(const std::string& data_dir, const std::string& name,
                                       const std::string& member);

}  // namespace leeway
