// The doctor, run briefly: these tests check that it measures and computes, not the values.
#include "launcher/doctor/doctor.h"

#include <future>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "bench/raw/raw_socket.h"
#include "common/process/process.h"
#include "config/job.h"
#include "launcher/doctor/peer.h"
#include "tests/catch.h"
#include "tests/launcher/bench_rig.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"

namespace leeway::doctor {
namespace {

using testing::kSeconds;
using testing::ReadJson;
using testing::Run;
using testing::Take;

// A doctor that listens in a process of its own; its hello has the "port".
std::unique_ptr<BenchProcess> ListeningDoctor(const std::string& host) {
  return Take(BenchProcess::Start("listener", [&]() -> absl::StatusOr<BenchService> {
    auto port = std::make_shared<std::promise<int>>();
    std::thread([port, host] {
      ServePeers(host + ":0", 0, [&](int bound) { port->set_value(bound); }).IgnoreError();
    }).detach();
    return BenchService{.hello = {{"port", port->get_future().get()}},
                        .handle = [](const Json& json) { return absl::StatusOr<Json>(json); }};
  }));
}

TEST_CASE("Two doctors measure the network between them") {
  const auto listener = ListeningDoctor("127.0.0.1");
  const std::string address = "127.0.0.1:" + std::to_string(listener->hello().value("port", 0));
  const TempFolder folder;
  REQUIRE(Run({"doctor", "--peer", address, "--seconds", "0.02", "--json", folder / "out.json"}) ==
          0);
  const PeerRates rates = PeerRatesFrom(ReadJson(folder / "out.json")["peer"]);
  CHECK(rates.up_gigabytes_per_second > 0);
  CHECK(rates.down_gigabytes_per_second > 0);
  CHECK(rates.both_gigabytes_per_second > 0);
  CHECK(rates.round_trip_seconds > 0);
}

// Returns the share of the model's floats that travels, computed from the document's own rates: no
// measurement is compared with another one.
double TravelShare(const Json& document) {
  const Json& job = document["job"];
  const double workers_by_server = job.value("workers", 0.0) / job.value("servers", 1.0);
  const double bytes = 4.0 * job.value("parameters", 0.0);
  const double link = 0.5e9 * document["peer"].value("both_gigabytes_per_second", 0.0);
  const double update =
      1e9 * document["host"]["update_gigabytes_per_second"].value("momentum", 0.0);
  const double travelling = job.value("exchange_seconds", 0.0) -
                            workers_by_server * bytes / update -
                            document["peer"].value("round_trip_seconds", 0.0);
  return travelling * link / (bytes * workers_by_server);
}

TEST_CASE("Across a network a job's exchange is reckoned, by what its codec leaves of it") {
  const auto listener = ListeningDoctor("127.0.0.1");
  const std::string address = "127.0.0.1:" + std::to_string(listener->hello().value("port", 0));
  const TempFolder folder;
  const auto diagnose = [&](const std::string& codec) {
    REQUIRE(Run({"doctor", LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml", "--data",
                 LEEWAY_SOURCE_DIR "/data", "--peer", address, "--seconds", "0.02", "--set",
                 "model.layers=[{flatten: {}}, {dense: {units: 8192}}, {dense: {units: 10}}]",
                 "--set", "compression={contributions: " + codec + ", weights: " + codec + "}",
                 "--json", folder / "out.json"}) == 0);
    return ReadJson(folder / "out.json");
  };
  const Json plain = diagnose("{type: none}");
  CHECK(TravelShare(plain) == Approx(1));
  CHECK(TravelShare(diagnose("{type: top_k, share: 0.01}")) < 0.05);
  // The other machine's workers and servers cannot be tried from here.
  CHECK(plain["job"].value("rehearsed_clocks", 1) == 0);
  CHECK(plain["job"].value("step_seconds", 0.0) ==
        plain["job"].value("estimated_step_seconds", 1.0));
}

TEST_CASE(
    "Across a network an estimate hides no exchange that cannot be, and says what it leaves out") {
  const auto listener = ListeningDoctor("127.0.0.1");
  const TempFolder folder;
  const auto diagnose = [&](const std::string& set) {
    REQUIRE(Run({"doctor", LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml", "--data",
                 LEEWAY_SOURCE_DIR "/data", "--peer",
                 "127.0.0.1:" + std::to_string(listener->hello().value("port", 0)), "--seconds",
                 "0.02", "--set", set, "--json", folder / "out.json"}) == 0);
    return ReadJson(folder / "out.json")["job"];
  };
  const Json plain = diagnose("exchange.type=gradient");
  CHECK(plain.value("hidden_seconds", 0.0) > 0);
  CHECK(plain["left_out"].empty());
  CHECK(diagnose("exchange.max_norm=1").value("hidden_seconds", 1.0) == 0);
  CHECK(diagnose("exchange.on_bad_gradient=skip").value("hidden_seconds", 1.0) == 0);
  CHECK(diagnose("workers.emulate.slow=[{ranks: [1], factor: 2}]")["left_out"] ==
        Json::array({"workers.emulate.slow"}));
}

TEST_CASE("A listening doctor turns nonsense away, and nobody listening is an error") {
  std::promise<int> port;
  auto listening = std::async(std::launch::async, [&] {
    return ServePeers("127.0.0.1:0", 1, [&](int bound) { port.set_value(bound); });
  });
  const std::string address = "127.0.0.1:" + std::to_string(port.get_future().get());
  RawSocket socket = Take(RawSocket::Connect(address));
  REQUIRE(socket.Send({.kind = 77, .block = ~0u, .clock = ~uint64_t{0}}, {}).ok());
  CHECK(absl::IsInvalidArgument(listening.get()));
  CHECK(absl::IsUnavailable(MeasurePeer(address, kSeconds).status()));
}

TEST_CASE("Doctors speak over IPv6, written in brackets") {
  int port = 0;
  if (!ListenTcp("[::1]:0", &port).ok()) SKIP("no IPv6 here");
  const auto listener = ListeningDoctor("[::1]");
  const std::string address = "[::1]:" + std::to_string(listener->hello().value("port", 0));
  CHECK(Take(RawSocket::Connect(address)).fd() >= 0);
  CHECK(absl::IsInvalidArgument(RawSocket::Connect("::1:7000").status()));
  CHECK(absl::IsInvalidArgument(ListenTcp("localhost", &port).status()));
}

TEST_CASE("A port is a number that there is") {
  int port = 0;
  for (const char* wrong : {"127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:http",
                            "127.0.0.1:", "127.0.0.1:99999999999999999999"}) {
    CHECK(absl::IsInvalidArgument(ListenTcp(wrong, &port).status()));
    CHECK(absl::IsInvalidArgument(RawSocket::Connect(wrong).status()));
  }
  CHECK(absl::IsInvalidArgument(RawSocket::Connect("127.0.0.1:0").status()));
}

TEST_CASE("What of a doctor's flags cannot be is said before anything is measured") {
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"job.yaml"},
                                             {"--set", "x=1"},
                                             {"--data", "/tmp"},
                                             {"--seconds", "1"},
                                             {"--json", "out.json"},
                                             {"--peer", "127.0.0.1:1"}}) {
    // An address that no machine has (RFC 5737). Without the check the command also ends, but with
    // another message.
    std::vector<std::string> arguments = {"doctor", "--listen", "192.0.2.1:1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream told;
    std::streambuf* const before = std::cerr.rdbuf(told.rdbuf());
    const int code = Run(arguments);
    std::cerr.rdbuf(before);
    CHECK(code == 2);
    CHECK_THAT(told.str(), Catch::Contains(" excludes "));
  }
  std::vector<std::string> measured;
  DoctorOptions options;
  options.peer = "127.0.0.1:1";
  options.progress = [&](const std::string& what) { measured.push_back(what); };
  std::optional<Diagnosis> diagnosis;
  const absl::Status nobody = Diagnose(options, diagnosis);
  CHECK(absl::IsUnavailable(nobody));
  CHECK_THAT(std::string(nobody.message()), Catch::Contains("--peer: "));
  CHECK(measured.empty());
}

TEST_CASE("A name with several addresses is tried with each") {
  int port = 0;
  const Descriptor listener = Take(ListenTcp("127.0.0.1:0", &port));
  // If localhost is also ::1, that address comes first, and nothing listens there.
  CHECK(RawSocket::Connect("localhost:" + std::to_string(port)).ok());
}

TEST_CASE("A peer that is silent is an error that names it, on both sides") {
  constexpr Duration kImpatience = std::chrono::milliseconds(50);
  int port = 0;
  // Connections are made, but not accepted.
  const Descriptor listener = Take(ListenTcp("127.0.0.1:0", &port));
  const std::string address = "127.0.0.1:" + std::to_string(port);
  const absl::Status asked = MeasurePeer(address, kSeconds, kImpatience).status();
  CHECK(absl::IsDeadlineExceeded(asked));
  CHECK(asked.message().find(address) != std::string::npos);

  RawSocket mute;
  const auto connect = [&](int bound) {
    mute = Take(RawSocket::Connect("127.0.0.1:" + std::to_string(bound)));
  };
  const absl::Status served = ServePeers("127.0.0.1:0", 1, connect, kImpatience);
  CHECK(absl::IsDeadlineExceeded(served));
  CHECK(served.message().find("127.0.0.1:") != std::string::npos);
}

TEST_CASE("The doctor says of a job what it wants and what a step will take") {
  const TempFolder folder;
  REQUIRE(Run({"doctor", LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml", "--data",
               LEEWAY_SOURCE_DIR "/data", "--seconds", "0.02", "--json", folder / "out.json"}) ==
          0);
  const Json document = ReadJson(folder / "out.json");
  CHECK(document["host"].value("add_scaled_gigabytes_per_second", 0.0) > 0);
  CHECK(document["host"]["exchange"].size() == 4);
  const Json& job = document["job"];
  CHECK(job.value("step_seconds", 0.0) > 0);
  CHECK(job.value("compute_seconds", 0.0) > 0);
  CHECK(job.value("exchange_seconds", 0.0) > 0);
  CHECK(job.value("servers_wanted", 0) >= 1);
  // The model is too small for larger blocks.
  CHECK(job.value("block_bytes_wanted", 0) == job.value("block_bytes", 1));
  CHECK(job.value("examples_per_second", 0.0) > 0);
  // The job was rehearsed and not only estimated.
  CHECK(job.value("rehearsed_clocks", 0) >= 9);
  CHECK(job.value("estimated_step_seconds", 0.0) > 0);
  CHECK(job.value("workers_measured", 0) == 3);
}

TEST_CASE("A doctor who cannot go on says what he has found, and why not more") {
  const TempFolder folder;
  DoctorOptions options;
  options.seconds = kSeconds;
  options.job = Take(LoadJob(LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml", {}));
  options.data_dir = LEEWAY_SOURCE_DIR "/data";
  options.program_folder = folder.path();
  std::optional<Diagnosis> without_servers;
  CHECK_FALSE(Diagnose(options, without_servers).ok());
  REQUIRE(without_servers.has_value());
  CHECK(without_servers->host.round_trip_seconds > 0);
  CHECK_FALSE(without_servers->job.has_value());

  // There are servers, but no workers to try the job with: the estimate stands.
  REQUIRE(symlink((ProgramFolder() + "/leeway-server").c_str(),
                  (folder / "leeway-server").c_str()) == 0);
  std::optional<Diagnosis> without_workers;
  CHECK(Diagnose(options, without_workers).ok());
  REQUIRE((without_workers.has_value() && without_workers->job.has_value()));
  const JobDiagnosis& job = *without_workers->job;
  CHECK_FALSE(job.rehearsal.has_value());
  CHECK(job.clock_seconds == job.estimate.seconds);
  CHECK_FALSE(job.rehearsal_error.empty());
  CHECK_THAT(DiagnosisText(*without_workers), Catch::Contains(job.rehearsal_error));
  CHECK(DiagnosisJson(*without_workers)["job"].value("rehearsal_error", "") == job.rehearsal_error);
}

TEST_CASE("The doctor exchanges as the job does: its mode, compression and spread") {
  const TempFolder folder;
  const auto diagnose = [&](std::vector<std::string> sets) {
    std::vector<std::string> arguments = {
        "doctor",    LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml",
        "--data",    LEEWAY_SOURCE_DIR "/data",
        "--seconds", "0.02",
        "--json",    folder / "out.json"};
    for (const std::string& set : sets) arguments.insert(arguments.end(), {"--set", set});
    REQUIRE(Run(arguments) == 0);
    return ReadJson(folder / "out.json")["job"];
  };
  const std::string delta =
      "exchange={type: delta, local_steps: 4, spread: true, optimizer: "
      "{type: sgd, learning_rate: 0.01}}";
  const Json job =
      diagnose({delta, "consistency.mode=async", "update={type: adagrad, learning_rate: 0.01}",
                "compression={contributions: {type: int8}, weights: {type: bf16}}"});
  CHECK(job.value("steps_per_clock", 0) == 4);
  CHECK(job.value("rehearsed_clocks", 0) > 0);
}

}  // namespace
}  // namespace leeway::doctor
