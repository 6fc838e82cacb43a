// No process is told of a server that it cannot reach: the process that comes last is refused, and
// told what to do.
#include <string>

#include "absl/strings/match.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::reach {
namespace {

struct Job {
  Job() : scenario(Options()) {}
  static CoordinatorOptions Options() {
    CoordinatorOptions options = TestOptions(JobShape{});
    options.network = "here";
    return options;
  }

  absl::Status Server(uint32_t index, const std::string& address, const std::string& network) {
    v1::RegisterServerRequest request;
    *request.mutable_build() = ThisBuild();
    request.set_index(index);
    request.set_address(address);
    request.set_network(network);
    request.set_nonce(1);
    return scenario.core.RegisterServer(request, scenario.now).status();
  }
  absl::Status Worker(uint32_t rank, const std::string& network, bool job_only = false) {
    v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
    request.set_network(network);
    request.set_job_only(job_only);
    return scenario.core.RegisterWorker(request, scenario.now).status();
  }
  // The process waits until the others have come.
  bool Waits(const absl::Status& status) { return absl::IsUnavailable(status); }

  Scenario scenario;
};

// Checks that the text says whose address it is, that the asking process is elsewhere, and which
// option helps.
void CheckText(const absl::Status& status, const std::string& address) {
  INFO(status.ToString());
  CHECK(absl::StrContains(status.message(), address));
  CHECK(absl::StrContains(status.message(), "runs on another"));
  CHECK(absl::StrContains(status.message(), "--listen HOST:PORT"));
}

TEST_CASE("a server at a wildcard address is refused, wherever it runs") {
  Job job;
  for (const char* address : {"0.0.0.0:7001", "[::]:7001", "0:1", "", "unix:/tmp/a:1"}) {
    INFO(address);
    CHECK(absl::IsInvalidArgument(job.Server(1, address, "here")));
  }
}

TEST_CASE("on one host everybody is at loopback") {
  Job job;
  CHECK(job.Server(0, "127.0.0.1:7000", "here").ok());
  CHECK(job.Server(1, "localhost:7001", "here").ok());
  CHECK(job.Worker(0, "here", true).ok());
  CHECK(job.Waits(job.Worker(0, "here")));
  CHECK(job.Waits(job.Worker(1, "here")));
}

TEST_CASE("on hosts of their own everybody is at an address of the network") {
  Job job;
  CHECK(job.Server(0, "10.0.0.1:7000", "here").ok());
  CHECK(job.Server(1, "10.0.0.2:7000", "there").ok());
  CHECK(job.Worker(0, "elsewhere", true).ok());
  CHECK(job.Waits(job.Worker(0, "elsewhere")));
}

TEST_CASE("a server at loopback that is not where the coordinator is is refused") {
  Job job;
  for (const char* address : {"127.0.0.1:7001", "[::1]:7001", "localhost:7001", "127.1:7001"}) {
    const absl::Status status = job.Server(1, address, "there");
    CHECK(absl::IsInvalidArgument(status));
    CheckText(status, address);
  }
}

TEST_CASE("a worker elsewhere is refused where a server is at loopback, also if it only looks") {
  Job job;
  CHECK(job.Server(0, "10.0.0.1:7000", "here").ok());
  CHECK(job.Server(1, "127.0.0.1:7001", "here").ok());
  const bool job_only = GENERATE(true, false);
  const absl::Status status = job.Worker(0, "there", job_only);
  CHECK(absl::IsFailedPrecondition(status));
  CheckText(status, "127.0.0.1:7001");
  // The refused registration has changed nothing.
  CHECK(job.Waits(job.Worker(0, "here")));
}

TEST_CASE("a server at loopback is refused where a worker elsewhere is") {
  Job job;
  CHECK(job.Server(0, "10.0.0.1:7000", "here").ok());
  CHECK(job.Waits(job.Worker(0, "there")));
  const absl::Status status = job.Server(1, "127.0.0.1:7001", "here");
  CHECK(absl::IsInvalidArgument(status));
  CheckText(status, "127.0.0.1:7001");
  CHECK(job.Server(1, "10.0.0.1:7001", "here").ok());
}

TEST_CASE("a server elsewhere is refused where another is at loopback") {
  Job job;
  CHECK(job.Server(0, "127.0.0.1:7000", "here").ok());
  const absl::Status status = job.Server(1, "10.0.0.2:7001", "there");
  CHECK(absl::IsFailedPrecondition(status));
  CheckText(status, "127.0.0.1:7000");
}

TEST_CASE("of a network that nobody knows nothing is concluded") {
  Job job;
  CHECK(job.Server(0, "127.0.0.1:7000", "").ok());
  CHECK(job.Server(1, "127.0.0.1:7001", "here").ok());
  CHECK(job.Waits(job.Worker(0, "")));
}

}  // namespace
}  // namespace leeway::reach
