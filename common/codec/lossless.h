// Which codecs keep each bit.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// True if values are sent unchanged, which is the default.
inline bool IsLossless(const v1::Codec& codec) {
  return codec.has_none() || codec.type_case() == v1::Codec::TYPE_NOT_SET;
}

}  // namespace leeway
