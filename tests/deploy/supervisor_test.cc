#include "deploy/launcher/supervisor.h"

#include <chrono>
#include <ctime>
#include <filesystem>

#include "common/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

class NoObserver : public RunObserver {
  void OnStatus(Time now, const v1::JobStatus& status, const ViewContext& context) override {}
  void OnEvent(const std::string& text) override {}
};

}  // namespace

TEST_CASE("A server that does not listen is waited for without work, also when that is over") {
  const TempFolder folder;
  REQUIRE(MakeFolders(folder / "logs").ok());
  // Takes its time to end.
  REQUIRE(WriteFileAtomically(folder / "leeway-server",
                              "#!/bin/sh\ntrap 'kill $!; sleep 0.5; exit 1' TERM\n"
                              "sleep 1000 &\nwait\n")
              .ok());
  std::filesystem::permissions(folder / "leeway-server", std::filesystem::perms::owner_all);
  auto signals = SignalSource::Create();
  REQUIRE(signals.ok());
  NoObserver observer;
  SupervisorSpec spec;
  spec.program_dir = spec.run_dir = folder.path();
  spec.start_seconds = 0.1;
  Supervisor supervisor(spec, **signals, observer);
  const std::clock_t busy_before = std::clock();
  const Time began = std::chrono::steady_clock::now();
  const auto outcome = supervisor.Run();
  const double busy = static_cast<double>(std::clock() - busy_before) / CLOCKS_PER_SEC;
  REQUIRE(outcome.ok());
  CHECK_THAT(outcome->failure, Catch::Contains("server 0 did not listen within 0.1 s"));
  CHECK(busy < 0.25 * Seconds(std::chrono::steady_clock::now() - began));
}

}  // namespace leeway
