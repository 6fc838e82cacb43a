// The device on which a job's workers compute (workers.device).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leeway {

struct DeviceChoice {
  // kAuto is the same as kCuda without a number, or the CPU if that GPU cannot be used.
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // For kCuda: CUDA's number of the device among those that CUDA_VISIBLE_DEVICES allows. If absent,
  // the devices are distributed to the workers by rank.
  std::optional<uint32_t> index = std::nullopt;
};

inline constexpr uint32_t kDeviceIndexMax = 63;

// Reads "auto", "cpu", "cuda" or "cuda:N" with N up to kDeviceIndexMax. Returns nothing for any
// other string.
std::optional<DeviceChoice> ParseDevice(const std::string& text);

}  // namespace leeway
