#include "server/coordinator/core/message_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/counted.h"
#include "common/printable.h"
#include "common/server_address.h"
#include "common/status.h"
#include "server/coordinator/core/lease_book.h"

namespace leeway {
namespace {

constexpr size_t kDigestCharacters = 64;
// The upper limits of byte numbers and of counts. The first is larger than any file or memory.
constexpr uint64_t kLoadBytesMax = uint64_t{1} << 56;
constexpr uint64_t kLoadCountMax = uint64_t{1} << 48;
// The highest possible generation. It is never reached, because a generation ends only when the job
// goes back or its coordinator is restarted.
constexpr uint64_t kGenerationMax = uint64_t{1} << 32;

absl::Status AtMost(const std::string& field, uint64_t value, uint64_t most) {
  if (value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": is ", value, ", must be at most ", most));
}

template <typename Ranks>
absl::Status CheckRanks(const std::string& field, const Ranks& ranks, uint32_t workers) {
  RETURN_IF_ERROR(AtMost(absl::StrCat("the number of entries in ", field), ranks.size(), workers));
  for (const uint32_t rank : ranks) RETURN_IF_ERROR(AtMost(field, rank, workers - 1));
  return absl::OkStatus();
}

absl::Status CheckFileName(const std::string& name) {
  RETURN_IF_ERROR(CheckPrintable("shard.file", name));
  const bool stays = !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
  if (stays) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shard.file: '", name, "' is not the name of a file in the cut's folder"));
}

}  // namespace

absl::Status CheckMessage(const v1::RegisterWorkerRequest& request) {
  RETURN_IF_ERROR(CheckPrintable("build.version", request.build().version()));
  RETURN_IF_ERROR(CheckPrintable("host", request.host()));
  RETURN_IF_ERROR(CheckPrintable("network", request.network()));
  RETURN_IF_ERROR(CheckPrintable("memory_host", request.memory_host()));
  for (const v1::TensorSpec& tensor : request.schema().tensors()) {
    RETURN_IF_ERROR(CheckPrintable("schema.tensors.name", tensor.name()));
  }
  return CheckPrintable("job_sha256", request.job_sha256());
}

absl::Status CheckMessage(const v1::LeaveRequest& request) {
  if (v1::LeaveReason_IsValid(request.reason())) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("reason: this build does not know the reason ", request.reason()));
}

absl::Status CheckMessage(const v1::RegisterServerRequest& request) {
  RETURN_IF_ERROR(CheckPrintable("build.version", request.build().version()));
  RETURN_IF_ERROR(CheckPrintable("host", request.host()));
  RETURN_IF_ERROR(CheckPrintable("network", request.network()));
  RETURN_IF_ERROR(CheckServerAddress("address", request.address()));
  if (!request.local_address().empty()) {
    RETURN_IF_ERROR(CheckLocalAddress("local_address", request.local_address()));
  }
  return AtMost("held_generation", request.held_generation(), kGenerationMax);
}

absl::Status CheckMessage(const v1::LeaseDataRequest& request) {
  for (const v1::DoneRange& range : request.done()) {
    RETURN_IF_ERROR(AtMost("done.first", range.first(), LeaseBook::kBatchMax));
    RETURN_IF_ERROR(AtMost("done.count", range.count(), LeaseBook::kBatchMax));
  }
  return absl::OkStatus();
}

absl::Status CheckMessage(const v1::ServerHeartbeatRequest& request, const MessageLimits& limits) {
  RETURN_IF_ERROR(AtMost("generation", request.generation(), limits.generation));
  RETURN_IF_ERROR(AtMost("the number of entries in synced", request.synced_size(), limits.shards));
  for (const v1::SyncedShard& synced : request.synced()) {
    RETURN_IF_ERROR(AtMost("synced.shard", synced.shard(), limits.shards - 1));
    RETURN_IF_ERROR(AtMost("synced.since_epoch", synced.since_epoch(), limits.epoch));
  }
  const v1::ServerLoad& load = request.load();
  RETURN_IF_ERROR(AtMost("load.held_bytes", load.held_bytes(), kLoadBytesMax));
  RETURN_IF_ERROR(AtMost("load.held_bytes_max", load.held_bytes_max(), kLoadBytesMax));
  RETURN_IF_ERROR(
      AtMost("load.refused_contributions", load.refused_contributions(), kLoadCountMax));
  return AtMost("load.refused_unread", load.refused_unread(), kLoadCountMax);
}

absl::Status CheckMessage(const v1::ContributionsHeldRequest& request,
                          const MessageLimits& limits) {
  RETURN_IF_ERROR(AtMost("clock", request.clock(), limits.clock));
  RETURN_IF_ERROR(AtMost("epoch", request.epoch(), limits.epoch));
  RETURN_IF_ERROR(CheckRanks("ranks", request.ranks(), limits.workers));
  RETURN_IF_ERROR(CheckRanks("refused", request.refused(), limits.workers));
  return AtMost("the number of entries in held_us", request.held_us_size(), request.ranks_size());
}

absl::Status CheckSavedShard(const v1::SavedShard& shard, const MessageLimits& limits) {
  RETURN_IF_ERROR(CheckFileName(shard.file()));
  const std::string& digest = shard.sha256();
  const bool hexadecimal = digest.size() == kDigestCharacters &&
                           std::all_of(digest.begin(), digest.end(), absl::ascii_isxdigit);
  if (!hexadecimal) {
    return absl::InvalidArgumentError(absl::StrCat("shard.sha256: '",
                                                   Printable(digest, kDigestCharacters),
                                                   "' is not a SHA-256 in hexadecimal digits"));
  }
  RETURN_IF_ERROR(AtMost("shard.bytes", shard.bytes(), kLoadBytesMax));
  if (shard.bytes() == 0) return absl::InvalidArgumentError("shard.bytes: is 0, must be above 0");
  const auto clocks = static_cast<uint32_t>(shard.clocks_size());
  if (clocks != 0 && clocks != limits.workers) {
    return absl::InvalidArgumentError(absl::StrCat("shard.clocks: has ", Counted(clocks, "clock"),
                                                   ", but the job has ",
                                                   Counted(limits.workers, "worker")));
  }
  for (const uint64_t clock : shard.clocks()) {
    RETURN_IF_ERROR(AtMost("shard.clocks", clock, limits.clock));
  }
  return absl::OkStatus();
}

}  // namespace leeway
