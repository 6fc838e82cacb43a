// workers.device: what a job's workers compute on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace leeway {

struct DeviceChoice {
  // kAuto is kCuda without a number, or the CPU if that GPU cannot be used.
  enum class Kind { kAuto, kCpu, kCuda };
  Kind kind = Kind::kAuto;
  // For kCuda: CUDA's number of the device, among those that CUDA_VISIBLE_DEVICES leaves. Absent:
  // the workers take the devices in turn, by rank.
  std::optional<uint32_t> index = std::nullopt;
};

inline constexpr uint32_t kDeviceIndexMax = 63;

// Reads "auto", "cpu", "cuda" or "cuda:N" with N up to kDeviceIndexMax. Nothing for another text.
std::optional<DeviceChoice> ParseDevice(const std::string& text);

}  // namespace leeway
