#include "launcher/supervision/supervisor.h"

#include <chrono>
#include <filesystem>

#include "common/exit_code.h"
#include "common/files/files.h"
#include "launcher/supervision/local_hosts.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::supervisor {
namespace {

class NoObserver : public RunObserver {
  void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) override {}
  void OnEvent(const std::string& text) override {}
};

// Writes a script that stands for leeway-server.
void WriteServer(const TempFolder& folder, const std::string& script) {
  REQUIRE(MakeFolders(folder / "logs").ok());
  REQUIRE(WriteFileAtomically(folder / "leeway-server", "#!/bin/sh\n" + script).ok());
  std::filesystem::permissions(folder / "leeway-server", std::filesystem::perms::owner_all);
}

SupervisorSpec SpecOf(const TempFolder& folder) {
  SupervisorSpec spec;
  spec.run_dir = spec.local_dir = folder.path();
  return spec;
}

}  // namespace

TEST_CASE("A server that does not listen is waited for without work, also when that is over") {
  const TempFolder folder;
  // The script takes its time to end.
  WriteServer(folder, "trap 'kill $!; sleep 0.5; exit 1' INT\nsleep 1000 &\nwait\n");
  auto signals = SignalSource::Create();
  REQUIRE(signals.ok());
  NoObserver observer;
  SupervisorSpec spec = SpecOf(folder);
  spec.start_seconds = 0.1;
  LocalHosts hosts(folder.path());
  Supervisor supervisor(spec, hosts, **signals, observer);
  const std::clock_t busy_before = std::clock();
  const Time began = std::chrono::steady_clock::now();
  const auto outcome = supervisor.Run();
  const double busy = static_cast<double>(std::clock() - busy_before) / CLOCKS_PER_SEC;
  REQUIRE(outcome.ok());
  CHECK_THAT(outcome->failure, Catch::Contains("server 0 did not listen within 0.1 s"));
  CHECK(busy < 0.25 * Seconds(std::chrono::steady_clock::now() - began));
}

TEST_CASE("A server 0 that dies before it listens is started again, as often as others are") {
  for (const char* death : {"kill -9 $$", "exit 1"}) {
    CAPTURE(death);
    const TempFolder folder;
    WriteServer(folder, "echo a life >> \"$0.lives\"\n" + std::string(death) + "\n");
    auto signals = SignalSource::Create();
    REQUIRE(signals.ok());
    NoObserver observer;
    SupervisorSpec spec = SpecOf(folder);
    spec.restarts.server = 2;
    LocalHosts hosts(folder.path());
    const auto outcome = Supervisor(spec, hosts, **signals, observer).Run();
    REQUIRE(outcome.ok());
    CHECK_THAT(outcome->failure, Catch::StartsWith("server 0 crashed with") &&
                                     Catch::Contains("after 2 restarts") &&
                                     Catch::Contains("logs/server-0.log"));
    CHECK(outcome->exit_code == kExitTemporary);
    CHECK(outcome->server_restarts == std::vector<uint32_t>{2});
    CHECK(*ReadFile(folder / "leeway-server.lives", 100) == "a life\na life\na life\n");
  }
}

TEST_CASE("A program that ends in the same way twice before it joins is not started again") {
  for (const bool same : {true, false}) {
    const TempFolder folder;
    // It names an address where nothing answers.
    WriteServer(folder,
                "while [ \"$1\" != --ready-fd ]; do shift; done\n"
                "echo 127.0.0.1:1 > /proc/self/fd/$2\n"
                "trap 'kill $!; exit 1' INT\nsleep 1000 &\nwait\n");
    auto signals = SignalSource::Create();
    REQUIRE(signals.ok());
    NoObserver observer;
    SupervisorSpec spec = SpecOf(folder);
    spec.restarts.worker = 2;
    spec.worker_command = {"/bin/sh", "-c",
                           same ? "echo no such module; exit 1" : "echo $$; exit 1"};
    LocalHosts hosts(folder.path());
    const auto outcome = Supervisor(spec, hosts, **signals, observer).Run();
    REQUIRE(outcome.ok());
    CHECK_THAT(
        outcome->failure,
        Catch::Contains(same ? "worker 0 crashed with exit code 1 twice before it joined the job"
                             : "worker 0 crashed with exit code 1 after 2 restarts"));
    CHECK(outcome->exit_code == (same ? kExitPermanent : kExitTemporary));
  }
}

TEST_CASE("A server 0 that refuses its job, or fails for good, is not started again") {
  for (const int code : {kExitUsage, kExitPermanent}) {
    const TempFolder folder;
    WriteServer(folder, "exit " + std::to_string(code) + "\n");
    auto signals = SignalSource::Create();
    REQUIRE(signals.ok());
    NoObserver observer;
    SupervisorSpec spec = SpecOf(folder);
    spec.restarts.server = 3;
    LocalHosts hosts(folder.path());
    const auto outcome = Supervisor(spec, hosts, **signals, observer).Run();
    REQUIRE(outcome.ok());
    CHECK(outcome->exit_code == code);
    CHECK(outcome->server_restarts == std::vector<uint32_t>{0});
  }
}

}  // namespace leeway::supervisor
