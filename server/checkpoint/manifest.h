// MANIFEST.json: what a checkpoint consists of. It is written last, and the checkpoint exists if
// and only if it verifies. The text is the JSON form of v1::CheckpointManifest and one more line,
// "sha256 HEX", the digest of all bytes before that line.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

inline constexpr uint32_t kCheckpointFormat = 1;
inline constexpr char kManifestName[] = "MANIFEST.json";

// Sets `format` and writes the manifest into the checkpoint's folder, durably. FAILED_PRECONDITION
// unless every file that it names is there in its full size.
absl::Status SaveManifest(const std::string& folder, v1::CheckpointManifest manifest);

// DATA_LOSS if it is damaged, NOT_FOUND if it does not exist, UNIMPLEMENTED for a newer format.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder);

// FAILED_PRECONDITION unless the job may continue from the checkpoint. It must have the same model,
// and an update rule whose slots were saved. In sync mode the checkpoint must be of sync mode, too,
// because in the other modes blocks are at different clocks.
absl::Status CheckGoesOn(const v1::CheckpointManifest& manifest, const v1::TrainingJob& job);

// Checks that the files are there, in the sizes that the manifest says.
absl::Status CheckFileSizes(const std::string& folder, const v1::CheckpointManifest& manifest);
// Also checks the digests of the files, and so reads all of them.
absl::Status CheckFileDigests(const std::string& folder, const v1::CheckpointManifest& manifest);

}  // namespace leeway
