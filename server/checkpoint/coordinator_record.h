// coordinator.json in the run folder. If a coordinator is killed, the next one continues its job
// from this file. (The new coordinator learns the rest from the newest checkpoint and from the
// processes that register.)
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leeway/v1/checkpoint.pb.h"

namespace leeway {

inline constexpr uint32_t kCoordinatorRecordFormat = 1;
inline constexpr char kCoordinatorRecordName[] = "coordinator.json";

// Sets `format` and writes the record durably.
absl::Status WriteCoordinatorRecord(const std::string& run_dir, v1::CoordinatorRecord record);

// Returns nullopt if the run has no record, DATA_LOSS if the record is damaged, and UNIMPLEMENTED
// for a newer format.
absl::StatusOr<std::optional<v1::CoordinatorRecord>> ReadCoordinatorRecord(
    const std::string& run_dir);

}  // namespace leeway
