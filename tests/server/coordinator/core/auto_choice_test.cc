// `auto` compression is decided when all processes that begin the job are here, and all of them are
// told.
#include <algorithm>
#include <cmath>

#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::auto_choice {
namespace {

using Catch::Matchers::Contains;

constexpr double kNominal = 12.5e9;

TEST_CASE("the slowest link that was measured counts, or the nominal one where that says more") {
  LinkBook links;
  CHECK(links.Slowest(kNominal, true) == kNominal);
  links.Take(0, LinkBook::kOneHost);
  CHECK(std::isinf(links.Slowest(kNominal, true)));
  // The workers are on server 0's host, but another server is not.
  CHECK(links.Slowest(kNominal, false) == kNominal);
  // This rate is the processor's, not the wire's.
  links.Take(1, 900e6);
  CHECK(links.Slowest(kNominal, true) == kNominal);
  CHECK(links.Slowest(125e6, true) == 900e6);
  links.Take(2, 3e6);
  links.Take(3, 20e6);
  CHECK(links.Slowest(kNominal, true) == 3e6);
  // A new life has measured its link again.
  links.Take(2, 10e6);
  CHECK(links.Slowest(kNominal, true) == 10e6);
}

// At these rates a link of 12.5 GB/s is faster than any codec.
CoordinatorOptions AutoOptions() {
  CoordinatorOptions options = TestOptions({});
  v1::Compression* compression = options.job.mutable_compression();
  compression->mutable_contributions()->mutable_auto_();
  compression->mutable_weights()->mutable_fp16();
  options.auto_basis = {{{10e9, 10e9}, {10e9, 10e9}}, kNominal};
  return options;
}

void WorkerWithLink(Scenario& job, uint32_t rank, std::optional<double> link) {
  job.Carry();
  v1::RegisterWorkerRequest request = WorkerRequest(rank, 100 + rank);
  if (link) request.set_link(*link);
  CHECK(absl::IsUnavailable(job.core.RegisterWorker(request, job.now).status()));
}

TEST_CASE("auto is chosen by what the workers have measured, and servers and workers are told") {
  const auto [link, chosen] = GENERATE(table<std::optional<double>, std::string>(
      {{std::nullopt, "none"}, {20e9, "none"}, {3e6, "int8"}}));
  Scenario job(AutoOptions());
  for (const uint32_t server : {0u, 1u}) {
    const auto reply = job.Server(server);
    REQUIRE(reply.ok());
    CHECK(reply->job().compression().contributions().has_auto_());
  }
  WorkerWithLink(job, 0, LinkBook::kOneHost);
  CHECK(job.Take<ConfigureServer>().empty());
  WorkerWithLink(job, 1, link);
  const auto records = job.Take<WriteRecord>();
  REQUIRE_FALSE(records.empty());
  CHECK(NameOf(records.back().record.auto_codec()) == chosen);
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    CHECK(NameOf(command.request.auto_codec()) == chosen);
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  const auto reply = job.Worker(1, 101);
  REQUIRE(reply.ok());
  CHECK(NameOf(reply->job().compression().contributions()) == chosen);
  CHECK(reply->job().compression().weights().has_fp16());
  std::string message;
  for (const Event& event : job.Take<Event>()) {
    if (event.name == "codec_chosen") message = event.message;
  }
  CHECK_THAT(message, Contains("auto is " + chosen));
}

TEST_CASE("what was chosen once stays, whatever a worker that comes later has measured") {
  Scenario job(AutoOptions());
  for (const uint32_t server : {0u, 1u}) REQUIRE(job.Server(server).ok());
  for (const uint32_t rank : {0u, 1u}) WorkerWithLink(job, rank, 20e9);
  // The servers are already making their blocks.
  WorkerWithLink(job, 1, 1e3);
  for (const ConfigureServer& command : job.Take<ConfigureServer>()) {
    CHECK(command.request.auto_codec().has_none());
    job.core.Answered(ConfigureDone{command.server, command.round, absl::OkStatus()}, job.now);
  }
  const auto reply = job.Worker(1, 101);
  REQUIRE(reply.ok());
  CHECK(reply->job().compression().contributions().has_none());
  const auto names = job.EventNames();
  CHECK(std::count(names.begin(), names.end(), "codec_chosen") == 1);
}

TEST_CASE("a link that is no rate is refused") {
  Scenario job(AutoOptions());
  for (const double link : {0.0, -1.0, std::nan("")}) {
    v1::RegisterWorkerRequest request = WorkerRequest(1, 101);
    request.set_link(link);
    const auto reply = job.core.RegisterWorker(request, job.now);
    CHECK(absl::IsInvalidArgument(reply.status()));
    CHECK_THAT(std::string(reply.status().message()), Contains("worker 1") && Contains("link"));
  }
}

}  // namespace
}  // namespace leeway::auto_choice
