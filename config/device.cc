#include "config/device.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace leeway {

std::optional<DeviceChoice> ParseDevice(const std::string& text) {
  if (text == "auto") return DeviceChoice{.kind = DeviceChoice::Kind::kAuto};
  if (text == "cpu") return DeviceChoice{.kind = DeviceChoice::Kind::kCpu};
  if (text == "cuda") return DeviceChoice{.kind = DeviceChoice::Kind::kCuda};
  absl::string_view rest = text;
  uint32_t index = 0;
  if (!absl::ConsumePrefix(&rest, "cuda:") || !absl::SimpleAtoi(rest, &index)) return std::nullopt;
  // Each device has one spelling: "cuda:01" and "cuda: 1" are refused.
  if (index > kDeviceIndexMax || rest != absl::StrCat(index)) return std::nullopt;
  return DeviceChoice{.kind = DeviceChoice::Kind::kCuda, .index = index};
}

}  // namespace leeway
