#include "server/node/job_network.h"

#include <filesystem>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::job_network {
namespace {

TEST_CASE("who listens where nobody else reaches it has its workers on the same host") {
  v1::Transport transport;
  CHECK(OnOneHost("127.0.0.1:0", transport));
  CHECK(OnOneHost("localhost:7000", transport));
  CHECK(OnOneHost("[::1]:7000", transport));
  CHECK_FALSE(OnOneHost("0.0.0.0:7000", transport));
  transport.set_type(v1::TRANSPORT_TYPE_TCP);
  CHECK_FALSE(OnOneHost("0.0.0.0:7000", transport));
  transport.set_type(v1::TRANSPORT_TYPE_SHM);
  CHECK(OnOneHost("0.0.0.0:7000", transport));
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

  // The device reports 100 Gb/s. A container's device reports 10, whatever its host has.
  const std::string device = root.path() + "/devices/virtual/net/veth0";
  REQUIRE(MakeFolders(device).ok());
  REQUIRE(WriteFileAtomically(device + "/operstate", "up\n").ok());
  REQUIRE(WriteFileAtomically(device + "/speed", "100000\n").ok());
  std::filesystem::create_symlink(device, folder + "/veth0");
  CHECK(NominalLink(folder) == 1.25e9);
}

}  // namespace
}  // namespace leeway::job_network
