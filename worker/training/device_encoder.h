// Encodes contributions on the device that computes them. Only the encoded bytes cross the bus. The
// residual (the difference that the encoding has lost) stays on the device.
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

// Returns true if the job's workers encode their contributions on a device with memory of its own.
// They do so on two conditions. The device can write all encodings of the plan; top_k can only be
// computed on the host. And the host neither changes nor adds up contributions before they leave.
bool EncodesOnDevice(const v1::TrainingJob& job, uint64_t steps_per_clock,
                     const BlockLayout& layout, const CodecPlan& plan);

// Writes the same bytes as an encoder on the host would. Not thread-safe. The backend and the
// layout must outlive it.
class DeviceEncoder final : public ContributionEncoder {
 public:
  // Makes an encoder for a plan for which EncodesOnDevice is true. Returns RESOURCE_EXHAUSTED if
  // the device lacks memory for two copies of the residual and for the encoded bytes.
  static absl::StatusOr<std::unique_ptr<DeviceEncoder>> Make(Backend& backend,
                                                             const BlockLayout& layout,
                                                             const CodecPlan& plan);

  // Queues the encoding of these blocks (at least one) of the clock's contribution. The encoding
  // runs after the kernels that compute the blocks; kDown must already wait for those kernels. Then
  // kDown copies the encoded bytes to the host. The client may have the blocks when that copy is
  // done. `contribution` is the whole vector on the device. The elements that travel without
  // encoding are copied to `host`. `clock` must not be below the blocks' latest clock, as in
  // Encode. The client must not use the previous contribution of these blocks any more.
  void Start(uint64_t clock, BlockRange blocks, const float* contribution, std::span<float> host);

  // Returns the number of floats of device memory for the encoded bytes of a whole contribution.
  static size_t EncodedFloats(const BlockLayout& layout, const CodecPlan& plan);

  // ---- ContributionEncoder
  // Returns the bytes that Start has copied to the host for this clock, and ignores `values`. The
  // bytes stay valid until the next Start of the block.
  EncodedContribution Encode(const Codec& codec, uint32_t block, uint64_t clock,
                             std::span<const float> values) override;
  absl::Status Read(uint64_t clock, std::span<float> out) const override;
  void Undo(uint64_t clock) override;
  absl::Status Set(std::span<const float> values) override;

 private:
  // How one block is encoded, and where its bytes begin, in floats. A block without an encoding
  // travels as it is.
  struct Place {
    std::optional<GroupFormat> format;
    size_t begin = 0;
    size_t bytes = 0;
  };

  DeviceEncoder(Backend& backend, const BlockLayout& layout, std::vector<Place> places);
  // Returns the number of neighbouring blocks, from `first` on and before `end`, that can be
  // encoded together because their groups and bytes are contiguous. Returns 0 if `first` travels as
  // it is.
  uint32_t RunFrom(uint64_t clock, uint32_t first, uint32_t end) const;
  void EncodeRun(uint64_t clock, BlockRange blocks, const float* contribution);
  static std::vector<Place> PlacesOf(const BlockLayout& layout, const CodecPlan& plan);

  Backend& backend_;
  const BlockLayout& layout_;
  const std::vector<Place> places_;
  // The residual after the latest contribution of each block, and the residual before it.
  FlatVector after_;
  FlatVector before_;
  FlatVector encoded_;
  // For each block, the latest clock whose contribution was encoded.
  std::vector<std::optional<uint64_t>> clocks_;
};

}  // namespace leeway
