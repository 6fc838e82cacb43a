// What a job's workers.device leads to on machines with and without a driver, a module and devices,
// with modules that are made for the test.
#include "worker/device/make_backend.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "config/device.h"
#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tests/worker/device/says.h"
#include "worker/compute/onednn/cpu_library.h"

namespace leeway::make_backend {
namespace {

using absl::StatusCode;
using testing::Says;

v1::Workers WorkersOn(const std::string& device) {
  v1::Workers workers;
  workers.set_device(device);
  return workers;
}

std::string Module(const std::string& name) {
  return std::string(LEEWAY_FAKE_MODULES "/libfake_module_") + name + ".so";
}

// A machine that has a driver, as its library reports, and this module.
DeviceSources With(const std::string& module) {
  return {.driver = "libc.so.6", .modules = {"/nowhere/libleeway-cuda.so", Module(module)}};
}

absl::Status OpeningOf(const std::string& device, const DeviceSources& sources) {
  return ChooseBackend(WorkersOn(device), 0, sources).status();
}

TEST_CASE("A device is auto, cpu, cuda or cuda:N, in one spelling") {
  CHECK(ParseDevice("auto")->kind == DeviceChoice::Kind::kAuto);
  CHECK(ParseDevice("cpu")->kind == DeviceChoice::Kind::kCpu);
  CHECK(ParseDevice("cuda:0")->kind == DeviceChoice::Kind::kCuda);
  CHECK(ParseDevice("cuda")->kind == DeviceChoice::Kind::kCuda);
  CHECK_FALSE(ParseDevice("cuda")->index.has_value());
  CHECK(ParseDevice("cuda:63")->index == 63);
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:+1", "cuda:01", "cuda: 1",
                           "cuda:1 ", "cuda:64", "cuda:4294967296", "CPU", "Auto"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseDevice(text).has_value());
  }
  CHECK(OpeningOf("gpu", With("good")).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("A machine without a driver is told so before any module is loaded") {
  const DeviceSources sources{.driver = "libno-such-driver.so.1", .modules = {Module("good")}};
  const absl::Status status = OpeningOf("cuda:0", sources);
  CHECK(status.code() == StatusCode::kFailedPrecondition);
  CHECK(Says(status, {"workers.device: cuda:0", "no NVIDIA driver is installed", "nvidia-smi"}));
  CHECK(ListDevices(sources).status().code() == StatusCode::kFailedPrecondition);
}

TEST_CASE("A module that is missing, broken or another's is an error that says what to install") {
  const TempFolder folder;
  std::ofstream(folder / "text.so") << "no library at all, but longer than the header of one\n";
  const std::ofstream empty(folder / "empty.so");
  // dlopen would map this file, and the process would end with SIGBUS.
  std::filesystem::copy(Module("good"), folder / "short.so");
  std::filesystem::resize_file(folder / "short.so", std::filesystem::file_size(Module("good")) / 2);
  struct Case {
    std::string module;
    StatusCode code;
    std::vector<absl::string_view> says;
  };
  const std::vector<Case> cases = {
      {"/nowhere/x.so", StatusCode::kNotFound, {"not installed", "/nowhere/x.so", "install"}},
      {folder / "text.so", StatusCode::kFailedPrecondition, {"text.so", "install it again"}},
      {folder / "empty.so", StatusCode::kFailedPrecondition, {"empty.so", "install it again"}},
      {folder / "short.so", StatusCode::kFailedPrecondition, {"short.so", "install it again"}},
      {Module("no_entry"), StatusCode::kFailedPrecondition, {"leeway_device_module", "no_entry"}},
      {Module("no_table"), StatusCode::kFailedPrecondition, {"returned no functions"}},
      {Module("other_abi"), StatusCode::kFailedPrecondition, {"version 999", "one package"}},
      {Module("other_build"),
       StatusCode::kFailedPrecondition,
       {"0.0.0-other", LEEWAY_MODULE_BUILD, "one package"}}};
  for (const Case& c : cases) {
    CAPTURE(c.module);
    const DeviceSources sources{.driver = "libc.so.6", .modules = {c.module}};
    const absl::Status status = OpeningOf("cuda:0", sources);
    INFO(status);
    CHECK(status.code() == c.code);
    for (const absl::string_view part : c.says) CHECK(Says(status, {part}));
    CHECK(ListDevices(sources).status().code() == c.code);
    // A job that leaves the choice to the worker still computes, and says why it does so here.
    const auto chosen = ChooseBackend(WorkersOn("auto"), 0, sources);
    REQUIRE(chosen.ok());
    CHECK(chosen->backend->shares_host_memory());
    for (const absl::string_view part : c.says) {
      CHECK(absl::StrContains(chosen->note, part));
    }
    CHECK(absl::StartsWith(chosen->note, "computing on the CPU (workers.device: auto): "));
    CHECK(std::count(chosen->note.begin(), chosen->note.end(), '\n') == 0);
  }
}

TEST_CASE("What is wrong with the devices themselves comes through the module as it is") {
  CHECK(OpeningOf("cuda:0", With("no_devices")).code() == StatusCode::kFailedPrecondition);
  CHECK(Says(OpeningOf("cuda:0", With("no_devices")), {"no driver runs"}));
  CHECK(OpeningOf("cuda:1", With("good")).code() == StatusCode::kUnavailable);
  CHECK(OpeningOf("cuda:2", With("good")).code() == StatusCode::kResourceExhausted);
  CHECK(OpeningOf("cuda:3", With("good")).code() == StatusCode::kUnimplemented);
  CHECK(OpeningOf("cuda:4", With("good")).code() == StatusCode::kInternal);
  CHECK(OpeningOf("cuda:5", With("good")).code() == StatusCode::kOutOfRange);
  CHECK(Says(OpeningOf("cuda:5", With("good")), {"workers.device: cuda:5: no such device"}));
}

TEST_CASE("A device that is there is taken, by name and by auto, and the CPU on request") {
  for (const char* device : {"cuda:0", "cuda", "auto"}) {
    const auto chosen = ChooseBackend(WorkersOn(device), 0, With("good"));
    REQUIRE(chosen.ok());
    CHECK(chosen->note == "computing on cuda:0, A fake GPU; all by hand");
    CHECK(chosen->pci_bus_id == "ffff:ff:1f.7");
    float y[3] = {};
    chosen->backend->Fill(3, 2.5f, y);
    CHECK(y[2] == 2.5f);
  }
  const auto cpu = ChooseBackend(WorkersOn("cpu"), 0, With("good"));
  REQUIRE(cpu.ok());
  CHECK(cpu->note == "computing on the CPU");
  ThreadPool pool(1);
  const bool built_with = MakeCpuLibrary(pool) != nullptr;
  CHECK(absl::StartsWith(cpu->library, built_with ? "oneDNN " : ""));
  REQUIRE(setenv("LEEWAY_ONEDNN", "0", 1) == 0);
  CHECK(ChooseBackend(WorkersOn("cpu"), 0, With("good"))->library.empty());
  REQUIRE(unsetenv("LEEWAY_ONEDNN") == 0);
  const auto devices = ListDevices(With("good"));
  REQUIRE(devices.ok());
  CHECK(devices->size() == 5);
  CHECK(std::string((*devices)[4].name) == "A fake GPU");
  CHECK((*devices)[4].free_bytes == uint64_t{60} << 30);
  CHECK(std::string((*devices)[4].pci_bus_id) == "ffff:ff:1f.7");
  const auto module = DeviceModule::Load({Module("good")});
  REQUIRE(module.ok());
  CHECK(module->List(DeviceModule::Free::kUnknown).value()[4].free_bytes == 0);
}

TEST_CASE("A backend rounds as workers.precision says, wherever it computes") {
  // 1 + 2^-9 can be a float, a TF32 or a half, but not a bfloat16; 1 + 2^-12 can only be a float.
  const float a[] = {1 + 0x1p-9f, 1 + 0x1p-12f}, one[] = {1, 0};
  const std::tuple<v1::Precision, float, float> precisions[] = {
      {v1::PRECISION_FP32, 1 + 0x1p-9f, 1 + 0x1p-12f},
      {v1::PRECISION_TF32, 1 + 0x1p-9f, 1},
      {v1::PRECISION_BF16, 1, 1},
      {v1::PRECISION_FP16, 1 + 0x1p-9f, 1}};
  for (const char* device : {"cpu", "cuda:0"}) {
    for (const auto& [precision, first, second] : precisions) {
      v1::Workers workers = WorkersOn(device);
      workers.set_precision(precision);
      const auto chosen = ChooseBackend(workers, 0, With("good"));
      REQUIRE(chosen.ok());
      float c[2] = {};
      chosen->backend->Gemm({2, 1, 1}, Op::kAsIs, a, Op::kAsIs, one, false, c);
      CAPTURE(device, v1::Precision_Name(precision));
      CHECK(c[0] == first);
      CHECK(c[1] == second);
      const bool says =
          absl::StrContains(chosen->note, "16") || absl::StrContains(chosen->note, "32");
      CHECK(says == (precision != v1::PRECISION_FP32));
      const bool warns = absl::StrContains(chosen->note, "only to try it out");
      CHECK(warns == (std::string(device) == "cpu" && precision != v1::PRECISION_FP32));
    }
  }
  // The launcher's evaluation is in fp32.
  v1::Workers workers = WorkersOn("cpu");
  workers.set_precision(v1::PRECISION_BF16);
  const auto backend = MakeCpuBackend(workers);
  REQUIRE(backend.ok());
  float c[2] = {};
  (*backend)->Gemm({2, 1, 1}, Op::kAsIs, a, Op::kAsIs, one, false, c);
  CHECK(c[1] == 1 + 0x1p-12f);
}

TEST_CASE("Ranks take the GPUs in turn, and a number is the same for all") {
  const auto opened = [](const std::string& device, uint32_t rank) {
    return ChooseBackend(WorkersOn(device), rank, With("good")).status();
  };
  // The five devices have five different statuses.
  const std::vector<StatusCode> codes = {StatusCode::kOk, StatusCode::kUnavailable,
                                         StatusCode::kResourceExhausted, StatusCode::kUnimplemented,
                                         StatusCode::kInternal};
  for (uint32_t rank = 0; rank < 12; ++rank) {
    CAPTURE(rank);
    CHECK(opened("cuda", rank).code() == codes[rank % 5]);
    CHECK(opened("cuda:2", rank).code() == StatusCode::kResourceExhausted);
  }
  // With `auto` a worker continues on the CPU if its own GPU cannot be used.
  const auto busy = ChooseBackend(WorkersOn("auto"), 6, With("good"));
  REQUIRE(busy.ok());
  CHECK(busy->note == "computing on the CPU (workers.device: auto): busy");
}

TEST_CASE("LEEWAY_CUDA_MODULE names the module, and no other is looked for") {
  REQUIRE(setenv("LEEWAY_CUDA_MODULE", "/somewhere/m.so", 1) == 0);
  CHECK(ModulePlaces() == std::vector<std::string>{"/somewhere/m.so"});
  REQUIRE(setenv("LEEWAY_CUDA_MODULE", "m.so", 1) == 0);
  CHECK(ModulePlaces() == std::vector<std::string>{std::filesystem::current_path() / "m.so"});
  REQUIRE(setenv("LEEWAY_CUDA_MODULE", "", 1) == 0);
  CHECK(ModulePlaces().size() == 2);
  REQUIRE(unsetenv("LEEWAY_CUDA_MODULE") == 0);
  const std::vector<std::string> places = ModulePlaces();
  REQUIRE(places.size() == 2);
  CHECK(std::filesystem::path(places[0]).parent_path().filename() == "bin");
  CHECK(absl::EndsWith(places[1], "/lib/leeway/libleeway-cuda.so"));
}

// ---- the real module, where it was built

TEST_CASE("The module itself loads, and without a driver says so") {
  const std::string module = LEEWAY_FAKE_MODULES "/libleeway-cuda.so";
  if (!std::filesystem::exists(module)) SKIP("the GPU module was not built");
  const auto loaded = DeviceModule::Load({module});
  INFO(loaded.status());
  REQUIRE(loaded.ok());
  const auto devices = loaded->List(DeviceModule::Free::kMeasured);
  if (devices.ok()) SKIP("this machine has a GPU");
  CHECK(Says(devices.status(), {"NVIDIA driver"}));
  CHECK(loaded->Open(0, Precision::kFp32).status() == devices.status());
}

TEST_CASE("The module refuses an environment that takes digits from products") {
  const std::string module = LEEWAY_FAKE_MODULES "/libleeway-cuda.so";
  if (!std::filesystem::exists(module)) SKIP("the GPU module was not built");
  const auto loaded = DeviceModule::Load({module});
  REQUIRE(loaded.ok());
  REQUIRE(setenv("NVIDIA_TF32_OVERRIDE", "1", 1) == 0);
  CHECK(Says(loaded->Open(0, Precision::kFp32).status(), {"NVIDIA_TF32_OVERRIDE=1", "unset it"}));
  REQUIRE(unsetenv("NVIDIA_TF32_OVERRIDE") == 0);
}

}  // namespace
}  // namespace leeway::make_backend
