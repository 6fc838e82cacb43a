// Which codecs keep every bit.
#pragma once

#include "leeway/v1/job.pb.h"

namespace leeway {

// Values travel as they are; so they do where nothing is said.
inline bool IsLossless(const v1::Codec& codec) {
  return codec.has_none() || codec.type_case() == v1::Codec::TYPE_NOT_SET;
}

}  // namespace leeway
