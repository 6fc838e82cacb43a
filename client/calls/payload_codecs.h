// Encodes a client's contributions, decodes its weights, and counts the bytes of both.
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

// The bytes of payloads and their headers, sent over a link or in shared memory. Every attempt of a
// call counts.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
};

// Thread-safe except for the contributions (see ContributionEncoder). `layout` outlives it.
class PayloadCodecs {
 public:
  // Without a plan all values travel as float32. For `weights_stay` see ParameterClientOptions.
  PayloadCodecs(const BlockLayout& layout, std::shared_ptr<const CodecPlan> plan,
                bool weights_stay = false);

  // Null if all values travel as float32.
  const CodecPlan* plan() const { return plan_.get(); }

  // ---- contributions
  // Encodes contributions and keeps the residual. Null if none is kept.
  ContributionEncoder* encoder() const { return encoder_; }
  // Makes `encoder` encode contributions. Call this before the first contribution; the encoder
  // outlives this object.
  void EncodeBy(ContributionEncoder& encoder);
  v1::Encoding contribution_encoding(uint32_t block) const;
  // Encodes `values`, the contribution of one block. Returns nothing if the values travel as they
  // are. The residual is not added to a contribution of no examples, because such a contribution
  // has no effect.
  std::optional<EncodedContribution> EncodeContribution(uint32_t block, uint64_t clock,
                                                        uint64_t examples,
                                                        std::span<const float> values) const;

  // ---- weights Writes to the request's header which encoding the answer for the block at `target`
  // may have. If the answer may have no payload, or changes only, also writes which version
  // `target` holds.
  void Ask(const float* target, TransportRequest& request) const;
  // Writes an answer to `target`, the block's elements in the vector. The answer holds the values
  // themselves, or changes to the values that this client wrote to `target` last. `reads` is as in
  // the request. Returns INVALID_ARGUMENT if the answer does not fit the block; the contents of
  // `target` are then undefined. Returns UNAVAILABLE if `target` no longer has the version to which
  // the answer refers; the call must then be repeated.
  absl::Status Take(const TransportReply& reply, ReadKind reads, std::span<float> target);
  // Forgets which version of the block was written last, because the vector no longer holds it.
  void Forget(uint32_t block);

  // ---- bytes
  void CountSent(uint64_t bytes) { sent_.fetch_add(bytes, std::memory_order_relaxed); }
  void CountReceived(uint64_t bytes) { received_.fetch_add(bytes, std::memory_order_relaxed); }
  Traffic traffic() const {
    return {sent_.load(std::memory_order_relaxed), received_.load(std::memory_order_relaxed)};
  }

 private:
  // The version of a block that this client wrote last, and the address to which it wrote the
  // version.
  struct Held {
    const float* where = nullptr;
    uint64_t version = 0;
  };
  v1::Encoding weights_encoding(uint32_t block) const;
  bool TakesChanges(uint32_t block) const;
  // Returns true if the client must remember the block's version. It must if answers can be changes
  // to that version, or if a server need not send the version again.
  bool Remembers(uint32_t block) const;
  // Returns the error for an answer that refers to a version that `target` does not hold.
  absl::Status NotHere(uint64_t version) const;
  std::optional<uint64_t> HeldAt(uint32_t block, const float* where) const;

  const std::shared_ptr<const CodecPlan> plan_;
  const bool weights_stay_;
  // The encoder that runs on the host. Null if nothing is encoded, or if EncodeBy() has set another
  // encoder.
  std::unique_ptr<Residuals> residuals_;
  // The encoder in use. If null, nothing is encoded.
  ContributionEncoder* encoder_;
  std::atomic<uint64_t> sent_{0};
  std::atomic<uint64_t> received_{0};
  mutable Mutex mutex_;
  std::vector<Held> held_ GUARDED_BY(mutex_);
};

}  // namespace leeway
