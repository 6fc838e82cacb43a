#include "worker/device/cuda/device_check.h"

#include "absl/strings/str_cat.h"

namespace leeway::cuda {
namespace {

// Values of cudaError_t.
constexpr Code kInsufficientDriver = 35;
constexpr Code kDevicesUnavailable = 46;
constexpr Code kNoDevice = 100;
constexpr Code kNoKernelImage = 209;
constexpr Code kUnsupportedPtx = 222;

std::string VersionText(int version) {
  return absl::StrCat(version / 1000, ".", version % 1000 / 10);
}

std::string CapabilityText(int capability) {
  return absl::StrCat(capability / 10, ".", capability % 10);
}

}  // namespace

absl::Status CheckCount(Code code, int count, const CudaVersions& versions,
                        absl::string_view description) {
  if (code == kInsufficientDriver && versions.driver == 0) {
    return absl::FailedPreconditionError(
        "no NVIDIA driver runs on this machine: install one, and check that nvidia-smi lists the "
        "GPU");
  }
  if (code == kInsufficientDriver) {
    return absl::FailedPreconditionError(
        absl::StrCat("the NVIDIA driver supports CUDA up to ", VersionText(versions.driver),
                     ", but this module was built with ", VersionText(versions.runtime),
                     ": install a newer driver, or a module that was built with an older toolkit"));
  }
  if (code == kNoDevice || (code == kSuccess && count == 0)) {
    return absl::NotFoundError(
        "the NVIDIA driver sees no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  if (code != kSuccess) {
    return absl::InternalError(absl::StrCat("the NVIDIA driver failed to list GPUs: ", description,
                                            ": check nvidia-smi and the kernel's log"));
  }
  return absl::OkStatus();
}

absl::Status CheckIndex(uint32_t index, int count) {
  if (index < static_cast<uint32_t>(count)) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "workers.device: cuda:", index, ": this machine's GPUs are cuda:0 to cuda:", count - 1,
      ", as `leeway doctor` lists them (CUDA_VISIBLE_DEVICES hides others)"));
}

absl::Status CheckCapability(absl::string_view device, int capability, int oldest) {
  if (capability >= oldest) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(device, " has compute capability ", CapabilityText(capability),
                   "; this module has kernels for ", CapabilityText(oldest),
                   " and newer: use another device, or build the module for this device"));
}

absl::Status CheckPrecision(absl::string_view device, int capability, Precision precision) {
  constexpr int kAmpere = 80;
  if (precision == Precision::kFp32 || precision == Precision::kFp16 || capability >= kAmpere) {
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      device, " does not support ", PrecisionName(precision), ", which needs compute capability ",
      CapabilityText(kAmpere), ": set workers.precision to fp16 or fp32, or use another device"));
}

absl::Status OpenError(Code code, absl::string_view device, absl::string_view description) {
  const std::string what = absl::StrCat("opening ", device, ": ", description);
  switch (code) {
    case kSuccess:
      return absl::OkStatus();
    case kDevicesUnavailable:
      return absl::UnavailableError(
          absl::StrCat(what,
                       ": another process uses it exclusively; wait for that process, or set the "
                       "compute mode to default (nvidia-smi -c 0)"));
    case kOutOfMemory:
      return absl::ResourceExhaustedError(absl::StrCat(
          what, ": other processes use all its memory; end them, or use another device"));
    case kNoKernelImage:
    case kUnsupportedPtx:
      return absl::UnimplementedError(
          absl::StrCat(what,
                       ": this module has no kernels for the architecture of this device; use "
                       "another device, or build the module for this device"));
    default:
      return absl::InternalError(what);
  }
}

absl::Status CheckPrecisionSetting(const char* name, const char* value) {
  const absl::string_view text = value == nullptr ? "" : value;
  if (text.empty() || text == "0") return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the environment has ", name, "=", text,
                   ", with which products would lose digits that the job relies on: unset it"));
}

}  // namespace leeway::cuda
