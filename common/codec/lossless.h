// Tells which codecs lose nothing.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Returns true if the codec sends values unchanged, which is the default.
inline bool IsLossless(const v1::Codec& codec) {
  return codec.has_none() || codec.type_case() == v1::Codec::TYPE_NOT_SET;
}

}  // namespace leeway
