// A library's convolutions of any shape, compared with the same in double.
#include "worker/compute/onednn/cpu_library.h"

#include "common/buffer.h"
#include "tests/same_bits.h"
#include "tests/skip.h"
#include "tests/worker/model/reference.h"
#include "tests/worker/model/support.h"

namespace leeway::testing::cpu_library {
namespace {

// A grouped convolution's tensors, and the results of its passes.
struct Problem {
  GroupedShape shape;
  size_t batch = 1;
  Floats x, weight, bias, dy;

  const Conv2dShape& conv() const { return shape.conv; }
  // Maps a weight of the equivalent convolution of one group to its place here; -1 where that
  // convolution has a zero.
  long Place(size_t dense) const {
    const size_t filter = dense % conv().filters;
    const size_t channel = dense / conv().filters % conv().input.channels;
    const size_t tap = dense / conv().filters / conv().input.channels;
    const size_t channels = conv().input.channels / shape.groups;
    if (channel / channels != filter / (conv().filters / shape.groups)) return -1;
    return static_cast<long>((tap * channels + channel % channels) * conv().filters + filter);
  }
  Floats DenseWeight() const {
    Floats dense(conv().patch() * conv().filters);
    for (size_t i = 0; i < dense.size(); ++i) dense[i] = Place(i) < 0 ? 0 : weight[Place(i)];
    return dense;
  }
};

Problem Random(RandomStream& random) {
  const auto draw = [&](uint32_t from, uint32_t to) {
    return from + static_cast<uint32_t>(random.Below(to - from + 1));
  };
  Problem problem;
  Conv2dShape& conv = problem.shape.conv;
  conv.kernel = draw(1, 5);
  conv.stride = draw(1, 3);
  conv.padding = draw(0, 2);
  conv.input = {draw(5, 15), draw(5, 15), draw(1, 40)};
  conv.filters = draw(1, 40);
  switch (random.Below(3)) {
    case 0:
      problem.shape.groups = conv.filters = conv.input.channels;
      break;
    case 1:
      problem.shape.groups = draw(2, 3);
      conv.input.channels = problem.shape.groups * draw(1, 13);
      conv.filters = problem.shape.groups * draw(1, 13);
      break;
    default:
      break;
  }
  problem.batch = draw(1, 5);
  problem.x = RandomValues(problem.batch * conv.input.elements(), random.Below(1000));
  problem.weight =
      RandomValues(conv.patch() / problem.shape.groups * conv.filters, random.Below(1000));
  problem.bias = RandomValues(conv.filters, random.Below(1000));
  problem.dy = RandomValues(problem.batch * conv.output().elements(), random.Below(1000));
  return problem;
}

struct Results {
  Floats y, dweight, dx;
};

// Computes with all tensors `shift` floats past a cache line.
Results Compute(CpuLibrary& library, const Problem& problem, size_t shift) {
  std::vector<FloatBuffer> buffers;
  const auto place = [&](const Floats& values) {
    buffers.emplace_back(values.size() + shift);
    return std::copy(values.begin(), values.end(), buffers.back().data() + shift) - values.size();
  };
  const auto values = [](const float* data, size_t count) { return Floats(data, data + count); };
  float* const x = place(problem.x);
  float* const weight = place(problem.weight);
  float* const dy = place(problem.dy);
  float* const y = place(Floats(problem.dy.size(), 7.0f));
  float* const dweight = place(Floats(problem.weight.size(), 7.0f));
  float* const dx = place(Floats(problem.x.size(), 7.0f));
  library.ConvolveForward(problem.shape, problem.batch, x, weight, place(problem.bias), y);
  library.ConvolveBackward(problem.shape, problem.batch, x, weight, dy, dweight, dx);
  REQUIRE(library.status().ok());
  return {values(y, problem.dy.size()), values(dweight, problem.weight.size()),
          values(dx, problem.x.size())};
}

void CheckAgainstDouble(const Problem& problem, const Results& results) {
  constexpr double kTolerance = 2e-6;
  const Floats dense = problem.DenseWeight();
  const auto expected_y =
      ReferenceConv(problem.conv(), problem.batch, problem.x, dense, &problem.bias);
  const ConvGradients expected =
      ReferenceConvBackward(problem.conv(), problem.batch, problem.x, dense, problem.dy);
  Doubles dweight(problem.weight.size());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (problem.Place(i) >= 0) dweight[problem.Place(i)] = expected.weight[i];
  }
  CHECK(RelativeError(results.y, expected_y) < kTolerance);
  CHECK(RelativeError(results.dweight, dweight) < kTolerance);
  CHECK(RelativeError(results.dx, expected.x) < kTolerance);
}

TEST_CASE(
    "a library's convolutions of any shape are those of double, with the same bits anywhere") {
  ThreadPool pool(GENERATE(1u, 3u));
  const auto library = MakeCpuLibrary(pool);
  if (library == nullptr) SKIP("built without oneDNN, or LEEWAY_ONEDNN=0");
  RandomStream random(11, RandomPurpose::kGenerate);
  int taken = 0;
  for (int i = 0; i < 100; ++i) {
    const Problem problem = Random(random);
    const Conv2dShape& conv = problem.conv();
    CAPTURE(conv.input.height, conv.input.width, conv.input.channels, conv.filters, conv.kernel,
            conv.stride, conv.padding, problem.shape.groups, problem.batch);
    if (!library->Takes(problem.shape, problem.batch)) continue;
    ++taken;
    const Results first = Compute(*library, problem, 0);
    CheckAgainstDouble(problem, first);
    for (const size_t shift : {0, 1, 5, 8}) {
      const Results again = Compute(*library, problem, shift);
      CHECK(SameBits(first.y, again.y));
      CHECK(SameBits(first.dweight, again.dweight));
      CHECK(SameBits(first.dx, again.dx));
    }
  }
  INFO(library->about());
  CHECK(taken >= 50);
}

}  // namespace
}  // namespace leeway::testing::cpu_library
