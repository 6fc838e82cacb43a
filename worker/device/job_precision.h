// Converts workers.precision to the Precision that worker/compute uses.
#pragma once

#include "leeway/v1/job.pb.h"
#include "worker/compute/precision.h"

namespace leeway {

inline Precision PrecisionOf(const v1::Workers& workers) {
  switch (workers.precision()) {
    case v1::PRECISION_TF32:
      return Precision::kTf32;
    case v1::PRECISION_BF16:
      return Precision::kBf16;
    case v1::PRECISION_FP16:
      return Precision::kFp16;
    case v1::PRECISION_FP32:
      break;
  }
  return Precision::kFp32;
}

}  // namespace leeway
