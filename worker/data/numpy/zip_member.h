// Reads a file within a zip archive, such as an array of an .npz.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/data_file.h"

namespace leeway {

// Returns the names of the files in the archive `name` of the data folder. Returns INVALID_ARGUMENT
// if `name` is not a zip archive.
absl::StatusOr<std::vector<std::string>> ZipNames(const std::string& data_dir,
                                                  const std::string& name);

// Opens `member` of the archive, stored or deflated. The member is unpacked as it is read. Its path
// in errors is ARCHIVE(MEMBER). Returns NOT_FOUND if the archive does not have the member. Reading
// returns DATA_LOSS for damaged content, and verifies the checksum at the end.
absl::StatusOr<DataFile> OpenZipMember(const std::string& data_dir, const std::string& name,
                                       const std::string& member);

}  // namespace leeway
