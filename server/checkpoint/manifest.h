// MANIFEST.json lists the contents of a checkpoint. The manifest is written last, and the
// checkpoint exists if and only if the manifest is valid. The file contains a
// v1::CheckpointManifest in JSON and one more line, "sha256 HEX", which is the digest of all bytes
// before that line.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

inline constexpr uint32_t kCheckpointFormat = 1;
inline constexpr char kManifestName[] = "MANIFEST.json";

// Sets `format` and writes the manifest durably into the checkpoint's folder. Returns
// FAILED_PRECONDITION if a file that the manifest names is missing or has another size.
absl::Status SaveManifest(const std::string& folder, v1::CheckpointManifest manifest);

// Returns DATA_LOSS if the manifest is damaged, NOT_FOUND if it does not exist, and UNIMPLEMENTED
// for a newer format.
absl::StatusOr<v1::CheckpointManifest> ReadManifest(const std::string& folder);

// Returns FAILED_PRECONDITION if the job must not continue from the checkpoint. The job must have
// the same model, and an update rule whose slots were saved. A job in sync mode needs a
// checkpoint of a job in sync mode, because in the other modes blocks are at different clocks.
absl::Status CheckGoesOn(const v1::CheckpointManifest& manifest, const v1::TrainingJob& job);

// Checks that the files exist and have the sizes in the manifest.
absl::Status CheckFileSizes(const std::string& folder, const v1::CheckpointManifest& manifest);
// Also checks the digests of the files, for which it reads them completely.
absl::Status CheckFileDigests(const std::string& folder, const v1::CheckpointManifest& manifest);

}  // namespace leeway
