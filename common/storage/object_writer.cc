#include "common/storage/object_writer.h"

#include <algorithm>

#include <spdlog/spdlog.h>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace leeway {
namespace {

// The most parts that S3 allows in one upload.
constexpr size_t kPartsMax = 10'000;
// After every kPartsOfOneSize parts, the size of the parts grows by the first part's size. So
// 10,000 parts that begin with 8 MiB have room for 430 GiB.
constexpr size_t kPartsOfOneSize = 1'000;

}  // namespace

ObjectWriter::~ObjectWriter() {
  if (!upload_.empty()) Abort();
}

void ObjectWriter::Abort() {
  const absl::Status status = client_->AbortUpload(key_, std::exchange(upload_, ""));
  if (status.ok()) return;
  spdlog::warn("{}: the store still keeps parts of an abandoned upload: {}", location_,
               std::string(status.message()));
}

uint64_t ObjectWriter::PartBytes() const {
  return client_->part_bytes() * (1 + etags_.size() / kPartsOfOneSize);
}

absl::Status ObjectWriter::Append(std::span<const uint8_t> bytes) {
  RETURN_IF_ERROR(status_);
  while (!bytes.empty()) {
    // Send a full part only when more bytes follow. If no more follow, the file fits in one part
    // and is put in a single request.
    if (part_.size() == PartBytes()) {
      status_ = SendPart();
      RETURN_IF_ERROR(status_);
    }
    const size_t taken = std::min<uint64_t>(bytes.size(), PartBytes() - part_.size());
    part_.insert(part_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
  }
  return absl::OkStatus();
}

absl::Status ObjectWriter::SendPart() {
  if (etags_.size() == kPartsMax) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "writing '", location_, "': more than ", kPartsMax, " parts; raise LEEWAY_S3_PART_BYTES"));
  }
  if (upload_.empty()) {
    ASSIGN_OR_RETURN(upload_, client_->BeginUpload(key_, mark_));
  }
  const auto number = static_cast<uint32_t>(etags_.size() + 1);
  ASSIGN_OR_RETURN(std::string etag, client_->PutPart(key_, upload_, number, part_));
  etags_.push_back(std::move(etag));
  part_.clear();
  return absl::OkStatus();
}

absl::Status ObjectWriter::Complete() {
  if (upload_.empty()) return client_->Put(key_, part_);
  if (!part_.empty()) RETURN_IF_ERROR(SendPart());
  RETURN_IF_ERROR(client_->CompleteUpload(key_, upload_, etags_, mark_));
  upload_.clear();
  return absl::OkStatus();
}

absl::Status ObjectWriter::Finish() {
  RETURN_IF_ERROR(status_);
  if (std::exchange(finished_, true)) {
    return absl::FailedPreconditionError(absl::StrCat("'", location_, "' is already finished"));
  }
  status_ = Complete();
  part_ = {};
  if (!status_.ok() && !upload_.empty()) Abort();
  return status_;
}

}  // namespace leeway
