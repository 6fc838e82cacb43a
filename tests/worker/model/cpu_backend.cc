// Runs the tests of models on a CPU: TestBackend is EigenBackend.
#include "tests/worker/model/support.h"
#include "worker/compute/eigen/eigen_backend.h"

namespace leeway::testing {

std::unique_ptr<Backend> TestBackend(uint32_t threads, Precision precision) {
  absl::StatusOr<std::unique_ptr<Backend>> backend = EigenBackend::Make(threads, precision);
  REQUIRE(backend.ok());
  return *std::move(backend);
}

bool MayKeepDigits(Precision) { return false; }

}  // namespace leeway::testing
