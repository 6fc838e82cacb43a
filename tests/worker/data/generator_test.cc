#include "worker/data/generator.h"

#include <cmath>

#include "tests/worker/data/data_test_util.h"

namespace leeway::generator {
namespace {

using absl::StatusCode;
constexpr v1::Loss kSoftmax = v1::LOSS_SOFTMAX_CROSS_ENTROPY;

absl::StatusOr<Examples> Make(const std::string& options, uint64_t seed = 1,
                              v1::Loss loss = kSoftmax) {
  return Generate(FromText<v1::Generator>(options), seed, loss);
}

const std::vector<float>& Floats(const Examples& examples) {
  return std::get<std::vector<float>>(examples.values);
}

TEST_CASE("Generated examples are a function of seed and split") {
  const Examples a = *Make("examples: 20 shape: [2, 2, 3] classes: 3");
  CHECK(a.shape == ImageShape{2, 2, 3});
  CHECK(a.labels[4] == 1);
  CHECK(Floats(a) == Floats(*Make("examples: 20 shape: [2, 2, 3] classes: 3")));
  CHECK(Floats(a) != Floats(*Make("examples: 20 shape: [2, 2, 3] classes: 3", 2)));
  CHECK(Floats(a) != Floats(*Make("examples: 20 shape: [2, 2, 3] classes: 3 split: 1")));
}

TEST_CASE("Splits are drawn around the same centres with the noise asked for") {
  const std::string options = "examples: 4000 shape: 2 classes: 2 noise: 0.5";
  const Examples centres = *Make("examples: 2 shape: 2 classes: 2 noise: 0 split: 9");
  for (const char* split : {"", " split: 1"}) {
    const Examples examples = *Make(options + split);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < examples.size(); ++i) {
      for (size_t k = 0; k < 2; ++k) {
        const double d = Floats(examples)[i * 2 + k] - Floats(centres)[i % 2 * 2 + k];
        sum += d;
        squares += d * d;
      }
    }
    CHECK(std::abs(sum / 8000) < 0.02);
    CHECK(std::abs(squares / 8000 - 0.25) < 0.015);
  }
}

TEST_CASE("A generator that cannot be is an error") {
  RequireError(Make("examples: 4294967295 shape: [10000, 10000, 1]"),
               StatusCode::kResourceExhausted, {"generator"});
  RequireError(Make("examples: 1 shape: [100000000] classes: 100000"),
               StatusCode::kResourceExhausted, {"generator"});
  RequireError(Make("examples: 1 shape: [0]"), StatusCode::kInvalidArgument, {"generator", "0"});
  RequireError(Make("examples: 1"), StatusCode::kInvalidArgument, {"generator", "shape"});
  RequireError(Make("examples: 5 shape: [1] classes: 3", 1, v1::LOSS_LOGISTIC),
               StatusCode::kInvalidArgument, {"generator", "label 2"});
}

}  // namespace
}  // namespace leeway::generator
