#include "server/checkpoint/coordinator_record.h"

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/checkpoint/json_file.h"

namespace leeway {
namespace {

// The maximum size of a record. 4096 servers need about 150 bytes each; the rest is room for
// messages.
constexpr uint64_t kMaxBytes = 1 << 20;

std::string RecordPath(const std::string& run_dir) {
  return absl::StrCat(run_dir, "/", kCoordinatorRecordName);
}

}  // namespace

absl::Status WriteCoordinatorRecord(const std::string& run_dir, v1::CoordinatorRecord record) {
  record.set_format(kCoordinatorRecordFormat);
  return WriteJsonFile("record", RecordPath(run_dir), kMaxBytes, record);
}

absl::StatusOr<std::optional<v1::CoordinatorRecord>> ReadCoordinatorRecord(
    const std::string& run_dir) {
  v1::CoordinatorRecord record;
  const absl::Status status = ReadJsonFile("record", RecordPath(run_dir), kMaxBytes, record);
  if (absl::IsNotFound(status)) return std::nullopt;
  if (!status.ok() && !absl::IsUnavailable(status)) {
    return absl::DataLossError(
        absl::StrCat("the coordinator's ", status.message(),
                     ". To continue from the newest checkpoint, move this file "
                     "away and start with --resume"));
  }
  RETURN_IF_ERROR(status);
  if (record.format() != kCoordinatorRecordFormat) {
    return absl::UnimplementedError(absl::StrCat("record '", RecordPath(run_dir), "' has format ",
                                                 record.format(), ", but this build reads format ",
                                                 kCoordinatorRecordFormat));
  }
  return record;
}

}  // namespace leeway
