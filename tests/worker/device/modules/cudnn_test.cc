// cuDNN is found; which of its algorithms are chosen; and how its errors are handled. Built with
// the toolkit only; needs no GPU: plain loops stand for cuDNN's computations (fake_cudnn.h).
#include "worker/device/cuda/module/cudnn.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/philox.h"
#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tests/worker/device/cuda/host_convolver.h"
#include "tests/worker/device/cuda/host_runtime.h"
#include "tests/worker/device/modules/fake_cudnn.h"
#include "tests/worker/device/says.h"
#include "worker/device/cuda/module/convolution_choice.h"
#include "worker/device/cuda/module/cudnn_convolver.h"
#include "worker/device/cuda/module/libraries.h"
#include "worker/device/cuda/module/start_convolver.h"

namespace leeway::cuda {
namespace {

using testing::FakeCudnn;
using testing::HostRuntimeCounts;
using testing::MakeFakeCudnn;
using testing::MakeHostRuntime;
using testing::Says;

const Convolution kAny{ConvolutionPass::kForward, {{7, 6, 3}, 4, 3, 2, 1}, 2};

struct Rig {
  explicit Rig(size_t memory = size_t{1} << 40)
      : runtime(MakeHostRuntime({.memory_bytes = memory}, counts)),
        convolver(*CudnnConvolver::Make(MakeFakeCudnn(fake), *runtime, true)) {}

  bool Takes(const Convolution& convolution) {
    bool takes = false;
    REQUIRE(convolver->Prepare(convolution, &takes) == kSuccess);
    return takes;
  }

  FakeCudnn fake;
  HostRuntimeCounts counts;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<CudnnConvolver> convolver;
};

TEST_CASE("the toolkit's cuDNN has all that is used of it, and is for this CUDA") {
  const std::string folder = LEEWAY_CUDA_LIBRARY_FOLDER;
  if (!std::filesystem::exists(LibraryFile(folder, "libcudnn", CUDNN_MAJOR))) {
    SKIP("no cuDNN beside nvcc");
  }
  const auto cudnn = LoadCudnn({"/nowhere", folder});
  INFO(cudnn.status());
  REQUIRE(cudnn.ok());
  CHECK(cudnn->version() / 10000 == CUDNN_MAJOR);
  CHECK(LoadCudnn({"/nowhere"}).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("LEEWAY_CUDA_CUDNN=0 turns cuDNN off, and the remark says so") {
  HostRuntimeCounts counts;
  const auto runtime = MakeHostRuntime({}, counts);
  REQUIRE(setenv("LEEWAY_CUDA_CUDNN", "0", 1) == 0);
  const auto off = StartConvolver(*runtime);
  REQUIRE(unsetenv("LEEWAY_CUDA_CUDNN") == 0);
  REQUIRE(off.ok());
  CHECK(off->convolver == nullptr);
  CHECK(off->remark == "convolution by products of patches: LEEWAY_CUDA_CUDNN is 0");
}

TEST_CASE("without a GPU cuDNN does not start, which is a remark and no error") {
  HostRuntimeCounts counts;
  const auto runtime = MakeHostRuntime({}, counts);
  const auto started = StartConvolver(*runtime);
  REQUIRE(started.ok());
  if (started->convolver != nullptr) SKIP("this machine has a GPU");
  INFO(started->remark);
  CHECK(started->remark.starts_with("convolution by products of patches: "));
}

TEST_CASE("a cuDNN that does not start is an error by its cause") {
  FakeCudnn fake;
  HostRuntimeCounts counts;
  const auto runtime = MakeHostRuntime({}, counts);
  fake.create = CUDNN_STATUS_NOT_INITIALIZED;
  const absl::Status broken = CudnnConvolver::Make(MakeFakeCudnn(fake), *runtime).status();
  CHECK(broken.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(Says(broken, {"starting cuDNN 9.19.0 on cuda:0", "a fault"}));
  fake.create = CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
  CHECK(CudnnConvolver::Make(MakeFakeCudnn(fake), *runtime).status().code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK(fake.alive == 0);
}

TEST_CASE("all three passes are what a convolution is, in cuDNN's layouts and FMA throughout") {
  Rig rig;
  std::vector<float> x(kAny.batch * kAny.shape.input.elements());
  std::vector<float> dy(kAny.batch * kAny.shape.output().elements());
  std::vector<float> weight(kAny.shape.patch() * kAny.shape.filters);
  RandomStream stream(1, RandomPurpose::kGenerate);
  for (auto* values : {&x, &dy, &weight}) {
    for (float& value : *values) value = static_cast<float>(stream.Normal());
  }
  for (const auto pass :
       {ConvolutionPass::kForward, ConvolutionPass::kData, ConvolutionPass::kFilters}) {
    Convolution convolution = kAny;
    convolution.pass = pass;
    const auto& a = pass == ConvolutionPass::kData ? dy : x;
    const auto& b = pass == ConvolutionPass::kFilters ? dy : weight;
    const size_t size = pass == ConvolutionPass::kForward ? dy.size()
                        : pass == ConvolutionPass::kData  ? x.size()
                                                          : weight.size();
    std::vector<float> out(size), expected(size);
    bool takes = false;
    REQUIRE(rig.convolver->Run(convolution, a.data(), b.data(), out.data(), &takes) == kSuccess);
    REQUIRE(takes);
    testing::HostConvolve(convolution, a.data(), b.data(), expected.data());
    CHECK(out == expected);
  }
  CHECK(rig.fake.ran == std::vector<int>{1, 1, 1});
  CHECK(rig.fake.all_fma);
}

TEST_CASE("the first offer that is deterministic, in fp32 and small enough is taken, for good") {
  Rig rig;
  constexpr size_t kTooMuch = CudnnConvolver::kWorkspaceBytes + 1;
  rig.fake.offers = {{.algorithm = 6},
                     {.algorithm = 1, .determinism = CUDNN_NON_DETERMINISTIC},
                     {.algorithm = 1, .math = CUDNN_TENSOR_OP_MATH},
                     {.algorithm = 1, .status = CUDNN_STATUS_NOT_SUPPORTED},
                     {.algorithm = 2, .workspace = kTooMuch},
                     {.algorithm = 0, .workspace = 100},
                     {.algorithm = 1}};
  std::vector<float> x(1000), w(1000), y(1000);
  bool takes = false;
  REQUIRE(rig.convolver->Run(kAny, x.data(), w.data(), y.data(), &takes) == kSuccess);
  CHECK(rig.fake.ran == std::vector<int>{0});
  CHECK(rig.fake.workspace_given == 100);
  // There is one workspace, and nothing is asked again.
  CHECK(rig.counts.allocations == 1);
  rig.fake.offers = {{.algorithm = 1}};
  REQUIRE(rig.convolver->Run(kAny, x.data(), w.data(), y.data(), &takes) == kSuccess);
  CHECK(rig.fake.ran == std::vector<int>{0, 0});
  CHECK(rig.fake.asked == 1);
  Convolution larger = kAny;
  larger.batch = 3;
  CHECK(rig.Takes(larger));
  CHECK(rig.fake.asked == 2);
  CHECK(rig.counts.allocations == 1);
}

TEST_CASE("by itself cuDNN is offered what it is likely to be faster with") {
  FakeCudnn fake;
  HostRuntimeCounts counts;
  const auto runtime = MakeHostRuntime({}, counts);
  const auto convolver = *CudnnConvolver::Make(MakeFakeCudnn(fake), *runtime);
  const auto takes = [&](ConvolutionPass pass, const Conv2dShape& shape, size_t batch) {
    bool taken = false;
    REQUIRE(convolver->Prepare({pass, shape, batch}, &taken) == kSuccess);
    CHECK(taken == IsFasterByLibrary({pass, shape, batch}));
    return taken;
  };
  const Conv2dShape first{{28, 28, 1}, 16, 5, 1, 0}, wide{{32, 32, 64}, 64, 3, 1, 1};
  const Conv2dShape deep{{4, 4, 512}, 512, 3, 1, 1}, pointwise{{32, 32, 64}, 64, 1, 1, 0};
  CHECK(takes(ConvolutionPass::kForward, first, 512));
  CHECK_FALSE(takes(ConvolutionPass::kForward, first, 16));
  CHECK_FALSE(takes(ConvolutionPass::kData, first, 512));
  CHECK_FALSE(takes(ConvolutionPass::kFilters, first, 512));
  for (const ConvolutionPass pass :
       {ConvolutionPass::kForward, ConvolutionPass::kData, ConvolutionPass::kFilters}) {
    CHECK(takes(pass, wide, 128));
    CHECK_FALSE(takes(pass, deep, 128));
    CHECK_FALSE(takes(pass, pointwise, 512));
  }
}

TEST_CASE("a convolution that cuDNN does not have is not taken, whenever it says so") {
  Rig rig;
  SECTION("no offer may be used") { rig.fake.offers = {{.algorithm = 6}}; }
  SECTION("no offer at all") { rig.fake.offers.clear(); }
  SECTION("its heuristics refuse") { rig.fake.ask = CUDNN_STATUS_NOT_SUPPORTED_SHAPE; }
  SECTION("the sizes are not to its taste") { rig.fake.ask = CUDNN_STATUS_BAD_PARAM; }
  SECTION("the algorithm is not for these sizes") { rig.fake.size = CUDNN_STATUS_NOT_SUPPORTED; }
  CHECK_FALSE(rig.Takes(kAny));
}

TEST_CASE("a convolution that cuDNN refuses when it is to run is not tried again") {
  Rig rig;
  rig.fake.run = CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
  CHECK(rig.Takes(kAny));
  bool takes = true;
  float nothing = 0;
  CHECK(rig.convolver->Run(kAny, &nothing, &nothing, &nothing, &takes) == kSuccess);
  CHECK_FALSE(takes);
  CHECK_FALSE(rig.Takes(kAny));
}

TEST_CASE("a tensor that an int cannot index is not offered to cuDNN") {
  Rig rig;
  Convolution huge = kAny;
  huge.batch = size_t{1} << 25;
  CHECK_FALSE(rig.Takes(huge));
  CHECK(rig.fake.asked == 0);
}

TEST_CASE("cuDNN's errors are codes with its text, and those of memory are told apart") {
  Rig rig;
  rig.fake.ask = CUDNN_STATUS_INTERNAL_ERROR;
  bool takes = true;
  const int code = rig.convolver->Prepare(kAny, &takes);
  CHECK_FALSE(takes);
  CHECK(code == kCudnn + CUDNN_STATUS_INTERNAL_ERROR);
  CHECK(rig.convolver->Describe(code) == "cuDNN: a fault");
  CHECK_FALSE(rig.convolver->OutOfMemory(code));
  CHECK(rig.convolver->OutOfMemory(kCudnn + CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED));

  Rig small(1000);
  small.fake.offers = {{.algorithm = 1, .workspace = 5}};
  CHECK(small.convolver->Prepare(kAny, &takes) == kOutOfMemory);
  CHECK_FALSE(takes);
}

TEST_CASE("everything that was made of cuDNN's is destroyed, and the workspace is freed") {
  FakeCudnn fake;
  HostRuntimeCounts counts;
  const auto runtime = MakeHostRuntime({}, counts);
  {
    auto convolver = *CudnnConvolver::Make(MakeFakeCudnn(fake), *runtime, true);
    fake.offers = {{.algorithm = 1, .workspace = 5}};
    bool takes = false;
    REQUIRE(convolver->Prepare(kAny, &takes) == kSuccess);
    CHECK(fake.alive == 5);
    CHECK(counts.allocations == 1);
  }
  CHECK(fake.alive == 0);
  CHECK(counts.allocations == 0);
}

// ---- where libraries are

TEST_CASE("the libraries of Python's packages are found below an environment") {
  const TempFolder folder;
  namespace fs = std::filesystem;
  const fs::path packages = folder / "lib/python3.11/site-packages/nvidia";
  for (const char* part : {"cu13/lib", "cudnn/lib", "other/lib", "cublas"}) {
    fs::create_directories(packages / part);
  }
  CHECK(PythonFolders(folder.path()) ==
        std::vector<std::string>{packages / "cu13/lib", packages / "cudnn/lib"});
  CHECK(PythonFolders("/nowhere").empty());
  REQUIRE(setenv("VIRTUAL_ENV", std::string(folder.path()).c_str(), 1) == 0);
  const std::vector<std::string> folders = LibraryFolders();
  REQUIRE(unsetenv("VIRTUAL_ENV") == 0);
  CHECK(std::count(folders.begin(), folders.end(), std::string(packages / "cudnn/lib")) == 1);
}

TEST_CASE("folders that LEEWAY_CUDA_LIBRARIES names come first, in order") {
  REQUIRE(setenv("LEEWAY_CUDA_LIBRARIES", "/mine::/yours", 1) == 0);
  const std::vector<std::string> folders = LibraryFolders();
  REQUIRE(unsetenv("LEEWAY_CUDA_LIBRARIES") == 0);
  REQUIRE(folders.size() > 2);
  CHECK(folders[0] == "/mine");
  CHECK(folders[1] == "/yours");
  CHECK(LibraryFolders().front() != "/mine");
}

}  // namespace
}  // namespace leeway::cuda
