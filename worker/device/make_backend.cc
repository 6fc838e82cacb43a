#include "worker/device/make_backend.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway {

absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(const v1::Workers& workers) {
  switch (workers.device()) {
    case v1::DEVICE_AUTO:
    case v1::DEVICE_CPU:
      return EigenBackend::Make(workers.threads());
  }
  return absl::InvalidArgumentError(
      absl::StrCat("workers.device: no backend for device ", workers.device()));
}

}  // namespace leeway
