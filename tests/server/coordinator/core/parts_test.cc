// The schema's checks, and the lines of metrics.jsonl.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>

#include "server/coordinator/core/progress.h"
#include "server/coordinator/core/schema.h"
#include "server/coordinator/metrics_log.h"
#include "tests/catch.h"
#include "tests/server/coordinator/core/scenario.h"

namespace leeway::parts {
namespace {

using Catch::Matchers::Contains;

std::string Refusal(const std::function<void(v1::ModelSchema&)>& spoil) {
  v1::ModelSchema schema = TestSchema();
  spoil(schema);
  const absl::Status status = ValidateSchema(schema);
  CHECK(absl::IsInvalidArgument(status));
  return std::string(status.message());
}

TEST_CASE("a sound schema is accepted, others are refused with what is wrong") {
  CHECK(ValidateSchema(TestSchema()).ok());
  CHECK_THAT(Refusal([](auto& schema) { schema.clear_tensors(); }), Contains("no tensors"));
  CHECK_THAT(Refusal([](auto& schema) { schema.set_total(51); }), Contains("total is 51"));
  CHECK_THAT(Refusal([](auto& schema) { schema.set_trained(41); }), Contains("trained is 41"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->set_offset(39); }),
             Contains("'dense_0/bias' begins at element 39"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->set_name("dense_0/weight"); }),
             Contains("named twice"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(1)->clear_name(); }),
             Contains("no name"));
  CHECK_THAT(Refusal([](auto& schema) { schema.mutable_tensors(0)->set_shape(0, 0); }),
             Contains("no elements"));
  CHECK_THAT(Refusal([](auto& schema) {
               schema.mutable_tensors(0)->set_shape(0, uint64_t{1} << 62);
               schema.mutable_tensors(0)->set_shape(1, uint64_t{1} << 62);
             }),
             Contains("larger than"));
  for (const double momentum : {0.0, -0.1, 1.5, std::numeric_limits<double>::quiet_NaN(),
                                std::numeric_limits<double>::infinity()}) {
    CHECK_THAT(Refusal([&](auto& schema) { schema.mutable_tensors(1)->set_momentum(momentum); }),
               Contains("'dense_0/bias' has a momentum of ") && Contains("in (0, 1]"));
  }
  CHECK_THAT(Refusal([](auto& schema) {
               schema.mutable_tensors(1)->set_kind(static_cast<v1::TensorKind>(99));
             }),
             Contains("'dense_0/bias' has the kind 99"));
}

TEST_CASE("a line of metrics.jsonl is one JSON object") {
  v1::StepMetrics metrics;
  metrics.set_clock(7);
  metrics.set_train_loss(std::numeric_limits<double>::quiet_NaN());
  const auto step = nlohmann::json::parse(MetricsLine(StepRecord{2, metrics}, 1.5));
  CHECK(step["event"] == "step");
  CHECK(step["rank"] == 2);
  CHECK(step["clock"] == 7);
  CHECK(step["time"] == 1.5);
  CHECK(step["train_loss"].is_null());
  metrics.clear_train_loss();
  CHECK(nlohmann::json::parse(MetricsLine(StepRecord{2, metrics}, 1.5))["train_loss"].is_null());
  for (const char* key : {"data_seconds", "compute_seconds", "forward_seconds", "backward_seconds",
                          "exchange_seconds", "wait_seconds", "bytes_sent", "bytes_received"}) {
    CHECK(step.contains(key));
  }

  v1::EvaluationMetrics evaluation;
  CHECK_FALSE(nlohmann::json::parse(MetricsLine(EvaluationRecord{0, evaluation}, 0))
                  .contains("test_accuracy"));
  evaluation.set_test_accuracy(0.5);
  CHECK(nlohmann::json::parse(MetricsLine(EvaluationRecord{0, evaluation}, 0))["test_accuracy"] ==
        0.5);

  const Event event{.name = "worker_lost", .rank = 1, .message = "bad \xff byte \n new line"};
  const std::string line = MetricsLine(event, 0);
  CHECK_THAT(line, !Contains("\n"));
  CHECK(nlohmann::json::parse(line)["rank"] == 1);
  CHECK_FALSE(nlohmann::json::parse(line).contains("clock"));
}

// Returns the first group of every match of `pattern` in a file of the coordinator.
std::set<std::string> Found(const std::filesystem::path& file, const std::regex& pattern) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern); i != std::sregex_iterator();
       ++i) {
    found.insert((*i)[1]);
  }
  return found;
}

TEST_CASE("metrics_log.h lists every event of the coordinator, and no other") {
  const std::filesystem::path folder = LEEWAY_SOURCE_DIR "/server/coordinator";
  std::set<std::string> emitted;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".cc") continue;
    emitted.merge(Found(entry.path(), std::regex("\\.name = \"([a-z_]+)\"")));
  }
  CHECK(emitted.size() > 15);
  const auto listed = Found(folder / "metrics_log.h",
                            std::regex("\n//   ([a-z]+_[a-z_]+|checkpoint|resizing|resized)  "));
  CHECK(listed == emitted);
}

TEST_CASE("a worker's status says where its latest steps went") {
  RankProgress progress;
  v1::WorkerStatus status;
  progress.Fill(Time{}, status);
  CHECK(!status.has_hidden_share());
  v1::StepMetrics metrics;
  metrics.set_clock(1);
  metrics.set_data_seconds(1);
  metrics.set_compute_seconds(5);
  metrics.set_exchange_seconds(8);
  metrics.set_wait_seconds(2);
  REQUIRE(progress.Record(metrics, Time{}));
  progress.Fill(Time{}, status);
  CHECK(status.wait_share() == Approx(0.25));
  CHECK(status.hidden_share() == Approx(0.75));
}

}  // namespace
}  // namespace leeway::parts
