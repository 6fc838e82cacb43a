#include "deploy/launcher/report/history.h"

#include <cmath>

#include "absl/strings/match.h"
#include "tests/catch.h"
#include "tests/deploy/sample_run.h"
#include "tests/temp_folder.h"

namespace leeway {

TEST_CASE("A run's metrics are steps, evaluations and events") {
  const RunHistory history = SampleHistory();
  CHECK(history.steps.size() == 4);
  CHECK(history.steps[1].rank == 1);
  CHECK(history.steps[1].staleness == 3);
  CHECK(std::isnan(history.steps[3].train_loss));
  REQUIRE(history.evaluations.size() == 1);
  CHECK(*history.evaluations[0].test_accuracy == 0.8);
  CHECK(history.events.size() == 6);
  CHECK(history.events[3].name == "worker_lost");
  CHECK(history.events[3].details == "rank 1, incarnation 1, no heartbeat <10 s");
  CHECK(history.state == "finished");
}

TEST_CASE("The time of training adds up over the starts of a job, without the pauses") {
  CHECK(SampleHistory().seconds == Approx(5));
  const auto resumed = ParseHistory(std::string(kSampleMetrics) +
                                        "{\"event\":\"job_started\",\"time\":5000,\"clock\":20}\n"
                                        "{\"event\":\"checkpoint\",\"time\":5007}\n",
                                    "metrics.jsonl");
  CHECK(resumed->seconds == Approx(12));
}

TEST_CASE("The pause after a start that was killed is no time of training") {
  const auto resumed = ParseHistory(R"({"event":"job_started","time":100}
{"event":"step","time":110,"rank":0,"clock":5,"steps":5,"train_loss":0.5}
{"event":"server_registered","time":5000,"index":0}
{"event":"worker_registered","time":5001,"rank":0}
{"event":"job_started","time":5002}
{"event":"step","time":5006,"rank":0,"clock":9,"steps":4,"train_loss":0.5}
)",
                                    "metrics.jsonl");
  REQUIRE(resumed.ok());
  CHECK(resumed->seconds == Approx(14));
}

TEST_CASE("What a resumed run does again counts once, and what it does not stays") {
  // Rank 0 goes on at clock 12: its line of the clocks 10 to 20 is done again. Rank 1 had gone
  // further.
  const auto resumed =
      ParseHistory(std::string(kSampleMetrics) + R"({"event":"job_started","time":5000,"clock":12}
{"event":"step","time":5001,"rank":0,"clock":17,"steps":5,"train_loss":0.5}
{"event":"step","time":5002,"rank":0,"clock":20,"steps":3,"train_loss":0.5}
{"event":"step","time":5002,"rank":1,"clock":24,"steps":4,"train_loss":0.5}
{"event":"evaluation","time":5002,"clock":8,"test_loss":1}
)",
                   "metrics.jsonl");
  REQUIRE(resumed.ok());
  const auto totals = SumByWorker(*resumed);
  CHECK(totals.at(0).steps == 18);
  CHECK(totals.at(0).clock == 20);
  CHECK(totals.at(1).steps == 24);
  REQUIRE(resumed->evaluations.size() == 1);
  CHECK(resumed->evaluations[0].clock == 8);
  CHECK(resumed->state.empty());
}

TEST_CASE("Workers' totals are sums over their steps") {
  const auto totals = SumByWorker(SampleHistory());
  REQUIRE(totals.size() == 2);
  CHECK(totals.at(0).steps == 20);
  CHECK(totals.at(0).examples == 640);
  const StepTimes& times = totals.at(0).times;
  CHECK(times.compute == Approx(1.2));
  CHECK(times.backward == Approx(0.4));
  CHECK(times.other() == Approx(0.6));
  // The first line is of a time without wait_seconds: the whole exchange was waited for.
  CHECK(times.exchange == Approx(1.0));
  CHECK(times.wait == Approx(0.6));
  CHECK(times.total() == Approx(2.0));
  CHECK(*times.hidden() == Approx(0.4));
  CHECK(!StepTimes{}.hidden().has_value());
  CHECK(totals.at(1).staleness == 3);
  CHECK(totals.at(1).clock == 20);
}

TEST_CASE("A last line that was cut short is passed over, any other is an error that names it") {
  const std::string good = kSampleMetrics;
  CHECK(ParseHistory(good + "{\"event\":\"st", "m.jsonl")->steps.size() == 4);
  const auto bad =
      ParseHistory("{\"event\":\"step\"}\nnonsense\n{\"event\":\"step\"}\n", "m.jsonl");
  REQUIRE_FALSE(bad.ok());
  CHECK(absl::StrContains(bad.status().message(), "m.jsonl:2: "));
  CHECK_FALSE(ParseHistory("{\"event\":7}\n", "m.jsonl").ok());
  CHECK_FALSE(ParseHistory("[]\n", "m.jsonl").ok());
  CHECK_FALSE(ParseHistory("{\"event\":\"step\",\"rank\":\"x\"}\n", "m.jsonl").ok());
}

TEST_CASE("A count that is none is an error, whatever number it is") {
  for (const char* count : {"-1", "1.5", "1e70"}) {
    const std::string line = absl::StrCat("{\"event\":\"step\",\"staleness\":", count, "}\n");
    CHECK_FALSE(ParseHistory(line, "m.jsonl").ok());
  }
}

TEST_CASE("A run without metrics is an empty history") {
  const TempFolder folder;
  const auto history = ReadHistory(folder / "metrics.jsonl");
  REQUIRE(history.ok());
  CHECK(history->steps.empty());
  CHECK(history->state.empty());
}

}  // namespace leeway
