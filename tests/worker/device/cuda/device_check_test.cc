// Turns what CUDA reports about a machine's devices into statuses that say what to do.
#include "worker/device/cuda/device_check.h"

#include "tests/catch.h"
#include "tests/worker/device/says.h"

namespace leeway::cuda::device_check {
namespace {

using testing::Says;

using absl::StatusCode;

TEST_CASE("no driver, an old driver and no GPU are told apart") {
  const CudaVersions none{.driver = 0, .runtime = 13000};
  const CudaVersions old{.driver = 12080, .runtime = 13000};
  const CudaVersions fits{.driver = 13000, .runtime = 13000};
  const absl::Status no_driver = CheckCount(35, 0, none, "x");
  CHECK(no_driver.code() == StatusCode::kFailedPrecondition);
  CHECK(Says(no_driver, {"no NVIDIA driver runs", "install one"}));
  const absl::Status old_driver = CheckCount(35, 0, old, "x");
  CHECK(old_driver.code() == StatusCode::kFailedPrecondition);
  CHECK(Says(old_driver, {"CUDA up to 12.8", "built with 13.0", "newer driver"}));
  for (const absl::Status& no_gpu : {CheckCount(100, 0, fits, "x"), CheckCount(0, 0, fits, "x")}) {
    CHECK(no_gpu.code() == StatusCode::kNotFound);
    CHECK(Says(no_gpu, {"CUDA_VISIBLE_DEVICES"}));
  }
  const absl::Status broken = CheckCount(802, 0, fits, "system not yet initialized");
  CHECK(broken.code() == StatusCode::kInternal);
  CHECK(Says(broken, {"system not yet initialized"}));
  CHECK(CheckCount(0, 2, fits, "").ok());
}

TEST_CASE("a device that is not there is named with those that are") {
  CHECK(CheckIndex(1, 2).ok());
  const absl::Status status = CheckIndex(2, 2);
  CHECK(status.code() == StatusCode::kOutOfRange);
  CHECK(Says(status, {"cuda:2", "cuda:0 to cuda:1"}));
}

TEST_CASE("too old an architecture is refused, a newer one is not") {
  CHECK(CheckCapability("a T4", 75, 75).ok());
  CHECK(CheckCapability("a B200", 100, 75).ok());
  const absl::Status status = CheckCapability("cuda:0, V100", 70, 75);
  CHECK(status.code() == StatusCode::kUnimplemented);
  CHECK(Says(status, {"V100", "7.0", "7.5 and newer"}));
}

TEST_CASE("a precision that the architecture lacks is refused, with what it has") {
  for (const Precision precision : {Precision::kTf32, Precision::kBf16}) {
    CHECK(CheckPrecision("an A100", 80, precision).ok());
    const absl::Status status = CheckPrecision("cuda:0, a T4", 75, precision);
    CHECK(status.code() == StatusCode::kUnimplemented);
    CHECK(Says(status, {"a T4", PrecisionName(precision), "8.0", "fp16"}));
  }
  CHECK(CheckPrecision("a T4", 75, Precision::kFp32).ok());
  CHECK(CheckPrecision("a T4", 75, Precision::kFp16).ok());
}

TEST_CASE("a busy device may be free later, a full one needs somebody's help") {
  CHECK(OpenError(0, "d", "").ok());
  CHECK(OpenError(46, "d", "busy").code() == StatusCode::kUnavailable);
  CHECK(OpenError(2, "d", "out of memory").code() == StatusCode::kResourceExhausted);
  CHECK(OpenError(209, "d", "no image").code() == StatusCode::kUnimplemented);
  CHECK(OpenError(222, "d", "ptx").code() == StatusCode::kUnimplemented);
  const absl::Status other = OpenError(999, "cuda:3, a GPU", "unknown error");
  CHECK(other.code() == StatusCode::kInternal);
  CHECK(Says(other, {"cuda:3, a GPU", "unknown error"}));
}

TEST_CASE("an environment that takes digits from products is refused") {
  CHECK(CheckPrecisionSetting("NVIDIA_TF32_OVERRIDE", nullptr).ok());
  CHECK(CheckPrecisionSetting("NVIDIA_TF32_OVERRIDE", "").ok());
  CHECK(CheckPrecisionSetting("NVIDIA_TF32_OVERRIDE", "0").ok());
  const absl::Status status = CheckPrecisionSetting("NVIDIA_TF32_OVERRIDE", "1");
  CHECK(status.code() == StatusCode::kFailedPrecondition);
  CHECK(Says(status, {"NVIDIA_TF32_OVERRIDE=1"}));
}

}  // namespace
}  // namespace leeway::cuda::device_check
