// What a client does to payloads: it encodes contributions, decodes weights, and counts the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/calls/contribution_encoder.h"
#include "client/calls/residuals.h"
#include "client/transport/transport.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "common/mutex.h"
#include "leeway/v1/parameter_server.pb.h"

namespace leeway {

// Bytes of payloads and their headers, whatever carries them. Every attempt counts.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Thread-safe except for the contributions (see ContributionEncoder). `layout` outlives it.
class PayloadCodecs {
 public:
  // Without a plan everything travels as float32. For `weights_stay` see ParameterClientOptions.
  PayloadCodecs(const BlockLayout& layout, std::shared_ptr<const CodecPlan> plan,
                bool weights_stay = false);

  // Null: everything travels as float32.
  const CodecPlan* plan() const { return plan_.get(); }

  // ---- contributions
  bool keeps_residual() const { return encoder_ != nullptr; }
  // Only if a residual is kept.
  ContributionEncoder& encoder() const { return *encoder_; }
  // From now on `encoder` encodes contributions. Call this before the first of them; the encoder
  // outlives this object.
  void EncodeBy(ContributionEncoder& encoder);
  v1::Encoding contribution_encoding(uint32_t block) const;
  // Encodes `values`, which are the block's. Nothing if they travel as they are. A contribution of
  // no examples counts for nothing, and takes nothing of the residual with it.
  std::optional<EncodedContribution> EncodeContribution(uint32_t block, uint64_t clock,
                                                        uint64_t examples,
                                                        std::span<const float> values) const;

  // ---- weights
  // Says in the header of a request which encodings the answer for a block at `target` may have. It
  // also says which version is there, if that may spare the answer its payload or most of it.
  void Ask(const float* target, TransportRequest& request) const;
  // Writes an answer to `target`, the block's part of the vector. The answer holds the values
  // themselves, or changes that are added to what this client wrote there last. `reads` is as in
  // the request. INVALID_ARGUMENT if the answer does not fit; the block is void then. UNAVAILABLE
  // if the answer would have fitted, and must be asked for again.
  absl::Status Take(const TransportReply& reply, ReadKind reads, std::span<float> target);
  // The block no longer holds a version that a server knows.
  void Forget(uint32_t block);

  // ---- bytes
  void CountSent(uint64_t bytes) { sent_.fetch_add(bytes, std::memory_order_relaxed); }
  void CountReceived(uint64_t bytes) { received_.fetch_add(bytes, std::memory_order_relaxed); }
  Traffic traffic() const {
    return {sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed)};
  }

 private:
  // The version of a block that was written last, and where it was written.
  struct Held {
    const float* where = nullptr;
    uint64_t version = 0;
  };
  v1::Encoding weights_encoding(uint32_t block) const;
  bool TakesChanges(uint32_t block) const;
  // True if it is useful to know the block's version: changes refer to it, or it need not be sent
  // again.
  bool Remembers(uint32_t block) const;
  // The error for a version that the server believes to be here.
  absl::Status NotHere(uint64_t version) const;
  std::optional<uint64_t> HeldAt(uint32_t block, const float* where) const;

  const std::shared_ptr<const CodecPlan> plan_;
  const bool weights_stay_;
  // The host's encoder. Null if nothing is encoded, or if another encoder does it.
  std::unique_ptr<Residuals> residuals_;
  // Null: nothing is encoded.
  ContributionEncoder* encoder_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
  mutable Mutex mutex_;
  std::vector<Held> held_ GUARDED_BY(mutex_);
};

}  // namespace leeway
