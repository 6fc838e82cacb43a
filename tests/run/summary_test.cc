#include "run/summary.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "run/core/figures.h"
#include "tests/catch.h"
#include "tests/sample_run.h"

namespace leeway::summary {

TEST_CASE("Of a log without its beginning the rate is that of what it has") {
  const auto summary = [](const RunHistory& history) {
    RunSummary told;
    AddHistory(history, told);
    SetSteps(80, history, told);
    return told;
  };
  const RunSummary whole = summary(SampleHistory());
  CHECK(whole.by_rank.steps == std::vector<uint64_t>{20, 20});
  CHECK(whole.total.staleness() == 3);
  CHECK(whole.seconds == Approx(5));
  CHECK(whole.by_rank.times.at(0).wait_seconds() == Approx(0.6));
  CHECK(*HiddenShare(whole.by_rank.times.at(0)) == Approx(0.4));
  CHECK(whole.warnings.empty());
  CHECK(whole.total.examples() == 2 * 960);
  CHECK(whole.samples_per_second == Approx(2 * 192));
  std::string text = kSampleMetrics;
  const std::string start = R"("event":"job_started",)";
  text.insert(text.find(start) + start.size(), R"("clock":40,)");
  const RunSummary part = summary(ParseHistory(text));
  REQUIRE(part.warnings.size() == 1);
  CHECK_THAT(part.warnings[0], Catch::StartsWith("metrics.jsonl: "));
  CHECK_THAT(part.warnings[0], Catch::Contains("the log begins at clock 40"));
  CHECK(part.total.steps() == 80);
  CHECK(part.total.examples() == 2 * 960);
  CHECK(part.samples_per_second == Approx(192));
}

TEST_CASE("summary.json keeps its format byte for byte, read and written again") {
  for (const std::string& text : SampleSummaries()) {
    const auto read = ParseSummary(text, "summary.json");
    REQUIRE(read.ok());
    CHECK(SummaryJson(*read) == text);
  }
}

TEST_CASE("What is not known is null, and numbers that JSON cannot say too") {
  RunSummary summary;
  summary.state = "failed";
  summary.test.emplace().metrics.set_test_loss(std::nan(""));
  summary.message = "a log may hold any byte: \xff";
  const std::string text = SummaryJson(summary);
  const auto json = nlohmann::json::parse(text);
  CHECK(json["test_loss"].is_null());
  const auto read = ParseSummary(text, "summary.json");
  REQUIRE(read.ok());
  CHECK(read->model.weights_sha256.empty());
  CHECK_FALSE(read->test.has_value());
  // With an accuracy the model was tested, and its loss was not finite.
  summary.test->metrics.set_test_accuracy(0.1);
  const auto diverged = ParseSummary(SummaryJson(summary), "summary.json");
  REQUIRE((diverged.ok() && diverged->test.has_value()));
  CHECK(std::isnan(diverged->test->metrics.test_loss()));
}

TEST_CASE("What is no summary is an error that names the file") {
  for (const char* text : {"", "[]", "{", "{}", "null", R"({"state": 7})", "\xff"}) {
    const auto read = ParseSummary(text, "run/summary.json");
    REQUIRE_FALSE(read.ok());
    CHECK_THAT(std::string(read.status().message()),
               Catch::StartsWith("run/summary.json is damaged and not used: ") &&
                   !Catch::Contains("json.exception") && !Catch::Contains("\xff"));
  }
}

TEST_CASE("A summary that lacks a key, or has a value that cannot be, is not half used") {
  RunSummary summary;
  summary.state = "finished";
  summary.model.clock = 3;
  AddHistory(SampleHistory(), summary);
  const auto good = nlohmann::json::parse(SummaryJson(summary));
  REQUIRE(ParseSummary(good.dump(), "summary.json").ok());
  const auto error = [&](const nlohmann::json& json) {
    return std::string(ParseSummary(json.dump(), "summary.json").status().message());
  };
  for (const auto& [key, value] : good.items()) {
    if (key == "restarts") continue;
    INFO(key);
    auto without = good;
    without.erase(key);
    // Summaries of older versions do not have these keys.
    const bool newer = key == "overflowed_steps" || key == "replaced_pictures" ||
                       key == "went_back" || key == "clocks_again";
    CHECK(error(without) ==
          (newer ? "" : "summary.json is damaged and not used: '" + key + "' is missing"));
    for (const nlohmann::json& absurd :
         {nlohmann::json(-1), nlohmann::json({{"a", 1}}), nlohmann::json({-1}),
          nlohmann::json({{{"rank", "x"}}}), nlohmann::json(1e300)}) {
      // A loss may have any value, and a number of seconds may be large.
      if (absurd.is_number() && (key == "test_loss" || absurd > 0)) continue;
      auto wrong = good;
      wrong[key] = absurd;
      CHECK_THAT(error(wrong), Catch::StartsWith("summary.json is damaged and not used: '"));
    }
  }
  auto wrong = good;
  wrong["test_accuracy"] = 7;
  CHECK(error(wrong) ==
        "summary.json is damaged and not used: 'test_accuracy' is 7, which is out of range");
  wrong = good;
  wrong["state"] = "finishd";
  CHECK_THAT(error(wrong), Catch::Contains("'state' is not finished, stopped or failed"));
}

}  // namespace leeway::summary
