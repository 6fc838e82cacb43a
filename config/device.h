// workers.device: what a job's workers compute on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leeway {

struct DeviceChoice {
  // kAuto: as kCuda without a number, or the CPU where that GPU cannot be used.
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // Of kCuda: CUDA's number of the device, among those that CUDA_VISIBLE_DEVICES leaves. Absent:
  // the workers take them in turn, by rank.
  std::optional<uint32_t> index = std::nullopt;
};

inline constexpr uint32_t kDeviceIndexMax = 63;

// "auto", "cpu", "cuda" or "cuda:N" with N up to kDeviceIndexMax; nothing for another text.
std::optional<DeviceChoice> ParseDevice(const std::string& text);

}  // namespace leeway
