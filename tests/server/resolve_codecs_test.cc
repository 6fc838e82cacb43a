#include "server/resolve_codecs.h"

#include <filesystem>

#include "common/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

v1::TrainingJob AutoJob() {
  v1::TrainingJob job;
  job.mutable_compression()->mutable_contributions()->mutable_auto_();
  job.mutable_compression()->mutable_weights()->mutable_fp16();
  return job;
}

Time SteadyNow() { return std::chrono::steady_clock::now(); }

TEST_CASE("auto is none on one host, and what pays on a slow link otherwise") {
  v1::TrainingJob here = AutoJob();
  ResolveCodecs("127.0.0.1:0", 1e6, SteadyNow, here);
  CHECK(here.compression().contributions().has_none());
  CHECK(here.compression().weights().has_fp16());
  v1::TrainingJob there = AutoJob();
  ResolveCodecs("0.0.0.0:7000", 1e6, SteadyNow, there);
  CHECK(there.compression().contributions().has_int8());
  v1::TrainingJob shared = AutoJob();
  shared.mutable_transport()->set_type(v1::TRANSPORT_TYPE_SHM);
  ResolveCodecs("0.0.0.0:7000", 1e6, SteadyNow, shared);
  CHECK(shared.compression().contributions().has_none());
}

TEST_CASE("the nominal link is that of the fastest interface that is up") {
  TempFolder root;
  const std::string folder = root / "class";
  const auto add = [&](const std::string& name, const std::string& state,
                       const std::string& speed) {
    const std::string path = folder + "/" + name;
    REQUIRE(MakeFolders(path).ok());
    REQUIRE(WriteFileAtomically(path + "/operstate", state + "\n").ok());
    REQUIRE(WriteFileAtomically(path + "/speed", speed + "\n").ok());
  };
  CHECK(NominalLink(folder) == 125e6);
  add("lo", "unknown", "-1");
  CHECK(NominalLink(folder) == 125e6);
  add("eth0", "up", "10000");
  add("eth1", "down", "100000");
  CHECK(NominalLink(folder) == 1.25e9);
  CHECK(NominalLink(folder + "/none") == 125e6);

  // Says 100 Gb/s, as a container's says 10, whatever its host has.
  const std::string device = root.path() + "/devices/virtual/net/veth0";
  REQUIRE(MakeFolders(device).ok());
  REQUIRE(WriteFileAtomically(device + "/operstate", "up\n").ok());
  REQUIRE(WriteFileAtomically(device + "/speed", "100000\n").ok());
  std::filesystem::create_symlink(device, folder + "/veth0");
  CHECK(NominalLink(folder) == 1.25e9);
}

}  // namespace
}  // namespace leeway
