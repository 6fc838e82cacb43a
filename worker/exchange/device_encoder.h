// Contributions that are encoded on the device which makes them: only the encoded bytes cross its
// bus, and what the encodings lose stays there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls/block_range.h"
#include "client/calls/contribution_encoder.h"
#include "common/blocks.h"
#include "common/codec/plan.h"
#include "worker/compute/backend.h"
#include "worker/compute/flat_vector.h"

namespace leeway {

// Whether workers of the job encode their contributions on a device with memory of its own: if it
// writes all encodings of the plan (top_k is the host's), and the host neither changes nor adds up
// contributions before they leave.
bool EncodesOnDevice(const v1::TrainingJob& job, uint64_t steps_per_clock,
                     const BlockLayout& layout, const CodecPlan& plan);

// The bytes are those that the host would write. Not thread-safe. Backend and layout outlive it.
class DeviceEncoder final : public ContributionEncoder {
 public:
  // Of a plan that EncodesOnDevice. RESOURCE_EXHAUSTED where the device has no room for the
  // residual, twice, and the bytes.
  static absl::StatusOr<std::unique_ptr<DeviceEncoder>> Make(Backend& backend,
                                                             const BlockLayout& layout,
                                                             const CodecPlan& plan);

  // Queues the encoding of these blocks, at least one, of the clock's contribution, behind the
  // kernels that make them, for which kDown waits already; and in kDown the copies of their bytes
  // to the host. When these are done, the client may have the blocks. `contribution` is the whole
  // vector, the device's; its elements that travel as they are come down to `host`. `clock` follows
  // the rule of Encode. The client must have finished with the blocks' previous contribution.
  void Start(uint64_t clock, BlockRange blocks, const float* contribution, std::span<float> host);

  // Floats that the encoded bytes of a whole contribution take on the device.
  static size_t EncodedFloats(const BlockLayout& layout, const CodecPlan& plan);

  // ---- ContributionEncoder
  // The bytes that Start has brought down for this clock, whatever `values` are. They stay until
  // the next Start of the block.
  EncodedContribution Encode(const Codec& codec, uint32_t block, uint64_t clock,
                             std::span<const float> values) override;
  absl::Status Read(uint64_t clock, std::span<float> out) const override;
  void Undo(uint64_t clock) override;
  absl::Status Set(std::span<const float> values) override;

 private:
  // A block's, or nothing where it travels as it is; and where its bytes begin, in floats.
  struct Place {
    std::optional<GroupFormat> format;
    size_t begin = 0;
    size_t bytes = 0;
  };

  DeviceEncoder(Backend& backend, const BlockLayout& layout, std::vector<Place> places);
  // From `first` on, before `end`: how many neighbours are encoded as one, because their groups and
  // bytes are contiguous. 0: `first` travels as it is.
  uint32_t RunFrom(uint64_t clock, uint32_t first, uint32_t end) const;
  void EncodeRun(uint64_t clock, BlockRange blocks, const float* contribution);
  static std::vector<Place> PlacesOf(const BlockLayout& layout, const CodecPlan& plan);

  Backend& backend_;
  const BlockLayout& layout_;
  const std::vector<Place> places_;
  // After the latest contribution of each block, and before it.
  FlatVector after_;
  FlatVector before_;
  FlatVector encoded_;
  // By block, the latest encoded.
  std::vector<std::optional<uint64_t>> clocks_;
};

}  // namespace leeway
