// The doctor's list of GPUs, with modules made for tests.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "launcher/doctor/doctor.h"
#include "tests/catch.h"

namespace leeway::gpus {
namespace {

GpuFindings GpusOf(const std::string& module) {
  return FindGpus(
      {.driver = "libc.so.6",
       .modules = {std::string(LEEWAY_FAKE_MODULES "/libfake_module_") + module + ".so"}});
}

TEST_CASE("The doctor lists each GPU with its memory") {
  Diagnosis diagnosis;
  diagnosis.gpus = GpusOf("good");
  CHECK(diagnosis.gpus.none.empty());
  REQUIRE(diagnosis.gpus.devices.size() == 5);
  CHECK(absl::StrContains(DiagnosisText(diagnosis),
                          "GPU cuda:4: A fake GPU, compute capability 9.0, 80.0 GiB of memory, "
                          "60.0 free\n"));
  const Json document = DiagnosisJson(diagnosis)["gpus"];
  CHECK(document["devices"][1].value("device", "") == "cuda:1");
  CHECK(document["devices"][1].value("free_bytes", uint64_t{0}) == uint64_t{60} << 30);
  CHECK_FALSE(document.contains("none"));
}

TEST_CASE("The doctor says where a GPU is, as far as the machine tells") {
  GpuFindings gpus;
  gpus.devices = {{{"device", "cuda:0"}, {"numa_node", 1}, {"processors", "8-15"}},
                  {{"device", "cuda:1"}, {"numa_node", -1}, {"processors", ""}}};
  gpus.devices[0]["bytes_per_second_up"] = 25.04e9;
  gpus.devices[0]["bytes_per_second_down"] = 26e9;
  const std::string text = GpusText(gpus);
  CHECK(absl::StrContains(text,
                          " free, copies 25.0 GB/s up and 26.0 GB/s down, NUMA node 1, near "
                          "processors 8-15\n"));
  CHECK(absl::EndsWith(text, " free\n"));
}

TEST_CASE("Without a GPU the doctor says why, in one line") {
  const std::string module = GENERATE("no_devices", "other_abi", "nothing_there");
  Diagnosis diagnosis;
  diagnosis.gpus = GpusOf(module);
  CHECK(diagnosis.gpus.devices.empty());
  const std::string text = GpusText(diagnosis.gpus);
  CHECK(absl::StartsWith(text, "No GPU: looking for GPUs: "));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(DiagnosisJson(diagnosis)["gpus"].value("none", "") == diagnosis.gpus.none);
}

}  // namespace
}  // namespace leeway::gpus
