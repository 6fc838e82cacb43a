#include "server/checkpoint/worker_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/crc32.h"
#include "common/files/files.h"
#include "common/status.h"
#include "server/checkpoint/encoding.h"

namespace leeway {
namespace {

constexpr std::string_view kStateMagic = "LWWORKR1";
constexpr std::string_view kStateEndMagic = "LWWKEND1";
constexpr uint64_t kStatePrefixBytes = 32;
constexpr uint64_t kStateFooterBytes = 20;
constexpr uint64_t kStateChunkBytes = 1 << 20;

absl::Status DamagedState(const std::string& path, uint64_t position, const char* what) {
  return absl::DataLossError(
      absl::StrCat("worker state '", path, "', byte ", position, ": ", what));
}

bool HasMagic(const uint8_t* bytes, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(bytes), magic.size()) == magic;
}

absl::StatusOr<WorkerStateId> ReadPrefix(const StoredFile& file) {
  if (file.size() < kStatePrefixBytes + kStateFooterBytes) {
    return DamagedState(file.location(), file.size(), "the file is too short for a worker state");
  }
  uint8_t prefix[kStatePrefixBytes];
  RETURN_IF_ERROR(file.ReadAt(0, prefix));
  if (!HasMagic(prefix, kStateMagic)) {
    return DamagedState(file.location(), 0, "not a worker state of format 1");
  }
  if (Crc32({prefix, kStatePrefixBytes - 4}) !=
      NumberAt<uint32_t>(prefix + kStatePrefixBytes - 4)) {
    return DamagedState(file.location(), 0, "the checksum of the prefix is wrong");
  }
  return WorkerStateId{.job_id = NumberAt<uint64_t>(prefix + 8),
                       .clock = NumberAt<uint64_t>(prefix + 16),
                       .rank = NumberAt<uint32_t>(prefix + 24)};
}

// Checks the footer and returns the CRC of the data.
absl::StatusOr<uint32_t> ReadFooter(const StoredFile& file) {
  const uint64_t start = file.size() - kStateFooterBytes;
  uint8_t footer[kStateFooterBytes];
  RETURN_IF_ERROR(file.ReadAt(start, footer));
  if (NumberAt<uint64_t>(footer) != start - kStatePrefixBytes) {
    return DamagedState(file.location(), start,
                        "the length in the footer is not the length of the data");
  }
  if (!HasMagic(footer + 12, kStateEndMagic))
    return DamagedState(file.location(), start + 12, "the footer is missing");
  return NumberAt<uint32_t>(footer + 8);
}

}  // namespace

absl::StatusOr<WorkerStateWriter> WorkerStateWriter::Create(const std::string& path,
                                                            const WorkerStateId& id) {
  std::string prefix(kStateMagic);
  AppendNumber<uint64_t>(prefix, id.job_id);
  AppendNumber<uint64_t>(prefix, id.clock);
  AppendNumber<uint32_t>(prefix, id.rank);
  AppendNumber<uint32_t>(prefix, Crc32(BytesOf(prefix)));
  ASSIGN_OR_RETURN(SavedFileWriter file, SavedFileWriter::Create(path));
  RETURN_IF_ERROR(file.Append(BytesOf(prefix)));
  return WorkerStateWriter(std::move(file));
}

absl::Status WorkerStateWriter::Append(std::string_view data) {
  length_ += data.size();
  crc_ = Crc32(BytesOf(data), crc_);
  return file_.Append(BytesOf(data));
}

absl::StatusOr<v1::SavedShard> WorkerStateWriter::Finish() {
  std::string footer;
  AppendNumber<uint64_t>(footer, length_);
  AppendNumber<uint32_t>(footer, crc_);
  footer += kStateEndMagic;
  RETURN_IF_ERROR(file_.Append(BytesOf(footer)));
  return file_.Finish();
}

absl::StatusOr<v1::SavedShard> WriteWorkerState(const std::string& path, const WorkerStateId& id,
                                                std::string_view data) {
  ASSIGN_OR_RETURN(WorkerStateWriter writer, WorkerStateWriter::Create(path, id));
  RETURN_IF_ERROR(writer.Append(data));
  return writer.Finish();
}

absl::StatusOr<WorkerStateReader> WorkerStateReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<StoredFile> file, OpenStored(path));
  ASSIGN_OR_RETURN(const WorkerStateId id, ReadPrefix(*file));
  ASSIGN_OR_RETURN(const uint32_t crc, ReadFooter(*file));
  const uint64_t size = file->size() - kStatePrefixBytes - kStateFooterBytes;
  WorkerStateReader reader(std::move(file), id, size);
  RETURN_IF_ERROR(reader.CheckData(crc));
  return reader;
}

absl::Status WorkerStateReader::CheckData(uint32_t crc) const {
  uint32_t found = 0;
  for (uint64_t position = 0; position < size_; position += kStateChunkBytes) {
    ASSIGN_OR_RETURN(const std::string chunk, Read(position, kStateChunkBytes));
    found = Crc32(BytesOf(chunk), found);
  }
  return found == crc ? absl::OkStatus()
                      : DamagedState(file_->location(), kStatePrefixBytes,
                                     "the checksum of the data is wrong");
}

absl::StatusOr<std::string> WorkerStateReader::Read(uint64_t position, uint64_t max_bytes) const {
  std::string data(std::min(max_bytes, size_ - std::min(position, size_)), '\0');
  RETURN_IF_ERROR(file_->ReadAt(kStatePrefixBytes + position,
                                {reinterpret_cast<uint8_t*>(data.data()), data.size()}));
  return data;
}

}  // namespace leeway
