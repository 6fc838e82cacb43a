// workers.device: what a job's workers compute on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leeway {

struct DeviceChoice {
  // kAuto: the first GPU, or the CPU where there is none.
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // Of kCuda: CUDA's number of the device, among those that CUDA_VISIBLE_DEVICES leaves.
  uint32_t index = 0;
};

inline constexpr uint32_t kDeviceIndexMax = 63;

// "auto", "cpu" or "cuda:N" with N up to kDeviceIndexMax; nothing for another text.
std::optional<DeviceChoice> ParseDevice(const std::string& text);

}  // namespace leeway
