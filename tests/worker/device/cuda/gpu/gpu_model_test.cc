// Models on a GPU as workers run them, with memory of its own and all copies and kernels in flight
// at once. Each run has the same bits, which are those of kernels that run one by one.
#include <memory>
#include <string>
#include <vector>

#include "tests/worker/device/cuda/gpu/gpu.h"
#include "tests/worker/model/support.h"
#include "worker/compute/flat_vector.h"

namespace leeway::testing {
namespace {

using Floats = std::vector<float>;

constexpr char kCnn[] = R"(
    layers { conv2d { filters: 8 kernel: 3 padding: 1 } } layers { batch_norm {} }
    layers { relu {} } layers { max_pool {} } layers { conv2d { filters: 12 kernel: 3 } }
    layers { gelu {} } layers { flatten {} } layers { dropout { rate: 0.2 } }
    layers { dense { units: 10 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)";

// Returns the contribution of each of some steps.
std::vector<Floats> ContributionsOf(Backend& backend) {
  const ImageShape image{14, 13, 3};
  const auto model = BuildModel(kCnn, image, 10, backend);
  const Floats weights = InitialWeights(*model, 7);
  std::vector<Floats> contributions;
  for (uint64_t step = 0; step < 5; ++step) {
    // One batch is smaller than the others.
    const Batch batch = RandomBatch(step == 3 ? 17 : 32, image.elements(), 10, step);
    Floats contribution(weights.size());
    const auto loss =
        model->Train(batch, weights, {.seed = 7, .step = step, .rank = 0}, contribution);
    INFO(loss.status());
    REQUIRE(loss.ok());
    contributions.push_back(std::move(contribution));
  }
  return contributions;
}

TEST_CASE("a model has the same bits in each run on the GPU, and with one kernel at a time") {
  const auto gpu = OpenGpu();
  const std::vector<Floats> first = ContributionsOf(*gpu);
  const std::vector<Floats> again = ContributionsOf(*gpu);
  const std::vector<Floats> other = ContributionsOf(*OpenGpu());
  const std::vector<Floats> staged = ContributionsOf(*TestBackend());
  CHECK(again == first);
  CHECK(other == first);
  CHECK(staged == first);
}

TEST_CASE("a flat vector's twins are copied there and back, whole and in parts") {
  const auto gpu = OpenGpu();
  constexpr size_t kSize = 3'000'001;
  auto vector = FlatVector::Twins(*gpu, FloatBuffer(kSize));
  REQUIRE(vector.ok());
  const Floats values = RandomValues(kSize, 1);
  std::copy(values.begin(), values.end(), vector->host().begin());
  REQUIRE(vector->Up().ok());
  std::fill(vector->host().begin(), vector->host().end(), 0.0f);
  REQUIRE(vector->Down({5, 1000}).ok());
  CHECK(vector->host()[4] == 0);
  CHECK(vector->host()[5] == values[5]);
  CHECK(vector->host()[1004] == values[1004]);
  CHECK(vector->host()[1005] == 0);
  REQUIRE(vector->Down().ok());
  CHECK(Floats(vector->host().begin(), vector->host().end()) == values);
}

TEST_CASE("a GPU that is asked for more memory than it has says so, and goes on") {
  const auto gpu = OpenGpu();
  const auto memory = gpu->Allocate(size_t{1} << 44);
  CHECK(memory.status().code() == absl::StatusCode::kResourceExhausted);
  auto sum = FlatVector::Twins(*gpu, FloatBuffer(1));
  REQUIRE(sum.ok());
  gpu->Fill(1, 3, sum->device().data());
  REQUIRE(sum->Down().ok());
  CHECK(sum->host()[0] == 3);
}

}  // namespace
}  // namespace leeway::testing
