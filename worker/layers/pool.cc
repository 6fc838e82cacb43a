#include "worker/layers/pool.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/layers/checks.h"

namespace leeway {

absl::StatusOr<PoolShape> MakePoolShape(const v1::Pool& config, const ImageShape& input) {
  const uint32_t stride = config.has_stride() ? config.stride() : config.size();
  RETURN_IF_ERROR(CheckRange("size", config.size(), 1, 1024));
  RETURN_IF_ERROR(CheckRange("stride", stride, 1, 1024));
  if (config.padding() > config.size() / 2) {
    return absl::InvalidArgumentError(absl::StrCat("padding ", config.padding(),
                                                   " is more than half of the window's size of ",
                                                   config.size()));
  }
  const uint32_t border = 2 * config.padding();
  if (config.size() > input.height + border || config.size() > input.width + border) {
    return absl::InvalidArgumentError(absl::StrCat(
        "window size ", config.size(), " is larger than the ", input.height, " x ", input.width,
        " input", border == 0 ? "" : absl::StrCat(" with its padding of ", config.padding())));
  }
  return PoolShape{
      .input = input, .size = config.size(), .stride = stride, .padding = config.padding()};
}

}  // namespace leeway
