#include "server/checkpoint/worker_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/crc32.h"
#include "common/files/files.h"
#include "common/status.h"
#include "server/checkpoint/encoding.h"

namespace leeway {
namespace {

constexpr std::string_view kMagic = "LWWORKR1";
constexpr std::string_view kEndMagic = "LWWKEND1";
constexpr uint64_t kPrefixBytes = 32;
constexpr uint64_t kFooterBytes = 20;
constexpr uint64_t kChunkBytes = 1 << 20;

absl::Status Damaged(const std::string& path, uint64_t position, const char* what) {
  return absl::DataLossError(
      absl::StrCat("worker state '", path, "', byte ", position, ": ", what));
}

bool HasMagic(const uint8_t* bytes, std::string_view magic) {
  return std::string_view(reinterpret_cast<const char*>(bytes), magic.size()) == magic;
}

absl::StatusOr<WorkerStateId> ReadPrefix(const StoredFile& file) {
  if (file.size() < kPrefixBytes + kFooterBytes) {
    return Damaged(file.location(), file.size(), "ends before a worker state can");
  }
  uint8_t prefix[kPrefixBytes];
  RETURN_IF_ERROR(file.ReadAt(0, prefix));
  if (!HasMagic(prefix, kMagic)) {
    return Damaged(file.location(), 0, "not a worker state of format 1");
  }
  if (Crc32({prefix, kPrefixBytes - 4}) != NumberAt<uint32_t>(prefix + kPrefixBytes - 4)) {
    return Damaged(file.location(), 0, "checksum of the prefix is wrong");
  }
  return WorkerStateId{.job_id = NumberAt<uint64_t>(prefix + 8),
                       .clock = NumberAt<uint64_t>(prefix + 16),
                       .rank = NumberAt<uint32_t>(prefix + 24)};
}

// The CRC of the data.
absl::StatusOr<uint32_t> ReadFooter(const StoredFile& file) {
  const uint64_t start = file.size() - kFooterBytes;
  uint8_t footer[kFooterBytes];
  RETURN_IF_ERROR(file.ReadAt(start, footer));
  if (NumberAt<uint64_t>(footer) != start - kPrefixBytes) {
    return Damaged(file.location(), start, "length in the footer is not the data's");
  }
  if (!HasMagic(footer + 12, kEndMagic)) return Damaged(file.location(), start + 12, "no footer");
  return NumberAt<uint32_t>(footer + 8);
}

}  // namespace

absl::StatusOr<WorkerStateWriter> WorkerStateWriter::Create(const std::string& path,
                                                            const WorkerStateId& id) {
  std::string prefix(kMagic);
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
  footer += kEndMagic;
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
  const uint64_t size = file->size() - kPrefixBytes - kFooterBytes;
  WorkerStateReader reader(std::move(file), id, size);
  RETURN_IF_ERROR(reader.CheckData(crc));
  return reader;
}

absl::Status WorkerStateReader::CheckData(uint32_t crc) const {
  uint32_t found = 0;
  for (uint64_t position = 0; position < size_; position += kChunkBytes) {
    ASSIGN_OR_RETURN(const std::string chunk, Read(position, kChunkBytes));
    found = Crc32(BytesOf(chunk), found);
  }
  return found == crc ? absl::OkStatus()
                      : Damaged(file_->location(), kPrefixBytes, "checksum of the data is wrong");
}

absl::StatusOr<std::string> WorkerStateReader::Read(uint64_t position, uint64_t max_bytes) const {
  std::string data(std::min(max_bytes, size_ - std::min(position, size_)), '\0');
  RETURN_IF_ERROR(file_->ReadAt(kPrefixBytes + position,
                                {reinterpret_cast<uint8_t*>(data.data()), data.size()}));
  return data;
}

}  // namespace leeway
