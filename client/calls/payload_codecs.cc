#include "client/calls/payload_codecs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/buffer.h"
#include "common/codec/encoded.h"
#include "common/status.h"

namespace leeway {
namespace {

// Copies values that come without an encoding to `target`.
absl::Status TakeRaw(const FloatPayload& payload, std::span<float> target) {
  if (payload.bytes() != target.size_bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the server sent ", payload.size(), " values instead of ", target.size()));
  }
  payload.CopyTo(target);
  return absl::OkStatus();
}

}  // namespace

PayloadCodecs::PayloadCodecs(const BlockLayout& layout, std::shared_ptr<const CodecPlan> plan,
                             bool weights_stay)
    : plan_(std::move(plan)),
      weights_stay_(weights_stay),
      residuals_(plan_ != nullptr && plan_->compresses_contributions()
                     ? std::make_unique<Residuals>(layout)
                     : nullptr),
      encoder_(residuals_.get()),
      held_(layout.blocks()) {}

void PayloadCodecs::EncodeBy(ContributionEncoder& encoder) {
  residuals_.reset();
  encoder_ = &encoder;
}

v1::Encoding PayloadCodecs::contribution_encoding(uint32_t block) const {
  return plan_ == nullptr ? v1::ENCODING_RAW : plan_->contribution(block).encoding();
}

std::optional<EncodedContribution> PayloadCodecs::EncodeContribution(
    uint32_t block, uint64_t clock, uint64_t examples, std::span<const float> values) const {
  if (contribution_encoding(block) == v1::ENCODING_RAW) return std::nullopt;
  const Codec& codec = plan_->contribution(block);
  if (examples == 0) return EncodeBytes(codec, values, FloatBuffer(values.size()).span());
  return encoder_->Encode(codec, block, clock, values);
}

v1::Encoding PayloadCodecs::weights_encoding(uint32_t block) const {
  return plan_ == nullptr ? v1::ENCODING_RAW : plan_->weights(block).encoding();
}

bool PayloadCodecs::TakesChanges(uint32_t block) const {
  return CarriesChanges(weights_encoding(block));
}

bool PayloadCodecs::Remembers(uint32_t block) const {
  const v1::Encoding encoding = weights_encoding(block);
  return CarriesChanges(encoding) || (weights_stay_ && encoding == v1::ENCODING_RAW);
}

std::optional<uint64_t> PayloadCodecs::HeldAt(uint32_t block, const float* where) const {
  MutexLock lock(mutex_);
  if (held_[block].where != where) return std::nullopt;
  return held_[block].version;
}

void PayloadCodecs::Ask(const float* target, TransportRequest& request) const {
  v1::ExchangeHeader& header = request.header;
  const bool changes = TakesChanges(header.block());
  // The target receives the average, which is not a version of the weights.
  if (request.reads == ReadKind::kAverage) return;
  const bool latest = request.reads == ReadKind::kLatest;
  // The latest weights come as float32, not as changes.
  if (latest && changes) return;
  if (!latest) header.set_reply_encoding(weights_encoding(header.block()));
  // The answer to a contribution is a new version. So the request must name the version that
  // `target` holds only if the answer is changes to that version.
  const bool adds = request.kind != TransportRequest::Kind::kPull;
  if (adds && !changes) return;
  if (const auto version = HeldAt(header.block(), target); version.has_value()) {
    header.set_have_version(*version);
  }
}

absl::Status PayloadCodecs::NotHere(uint64_t version) const {
  const std::string text =
      absl::StrCat("the server says that this worker already has version ", version, ", ");
  // When the request named the version, `target` held it. Since then another call has received the
  // block into another vector.
  if (weights_stay_)
    return absl::UnavailableError(
        absl::StrCat(text, "but the worker no longer has that version; retrying"));
  return absl::InvalidArgumentError(
      absl::StrCat(text, "but the worker does not have that version"));
}

absl::Status PayloadCodecs::Take(const TransportReply& reply, ReadKind reads,
                                 std::span<float> target) {
  const v1::VersionHeader& version = reply.version;
  // The target of an average is not the weights' vector, so the noted version of the weights stays
  // valid.
  if (reads == ReadKind::kAverage) return TakeRaw(reply.payload, target);
  const std::optional<uint64_t> held = HeldAt(version.block(), target.data());
  if (version.unchanged()) {
    return held == version.version() ? absl::OkStatus() : NotHere(version.version());
  }
  Forget(version.block());
  if (version.encoding() == v1::ENCODING_RAW) {
    RETURN_IF_ERROR(TakeRaw(reply.payload, target));
  } else {
    ASSIGN_OR_RETURN(const auto values,
                     EncodedValues::Open(version.encoding(), reply.payload.owner(),
                                         reply.payload.pieces(), target.size()));
    const bool change = CarriesChanges(version.encoding());
    if (!change) {
      values->Read(0, target);
    } else if (version.has_since_version() && held == version.since_version()) {
      values->AddTo(target);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("the server sent the changes since version ", version.since_version(),
                       ", but this worker has ",
                       held.has_value() ? absl::StrCat("version ", *held) : "no version"));
    }
  }
  // Weights that were read without an encoding are not noted, because the server's changes do not
  // refer to them.
  const bool remembers =
      Remembers(version.block()) && !(reads == ReadKind::kLatest && TakesChanges(version.block()));
  if (!remembers) return absl::OkStatus();
  MutexLock lock(mutex_);
  held_[version.block()] = {target.data(), version.version()};
  return absl::OkStatus();
}

void PayloadCodecs::Forget(uint32_t block) {
  if (!Remembers(block)) return;
  MutexLock lock(mutex_);
  held_[block] = {};
}

}  // namespace leeway
