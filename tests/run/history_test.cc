#include "run/history.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/files/files.h"
#include "run/core/figures.h"
#include "run/history_builder.h"
#include "tests/catch.h"
#include "tests/sample_run.h"
#include "tests/temp_folder.h"

namespace leeway::history {

TEST_CASE("A run's metrics are steps, evaluations and events") {
  const RunHistory history = SampleHistory();
  CHECK(history.steps.size() == 4);
  CHECK(history.steps[1].rank == 1);
  CHECK(history.steps[1].metrics.staleness() == 3);
  CHECK_FALSE(history.steps[3].metrics.has_train_loss());
  REQUIRE(history.evaluations.size() == 1);
  CHECK(history.evaluations[0].test_accuracy() == 0.8);
  CHECK(history.events.size() == 6);
  CHECK(history.events[3].name == "worker_lost");
  CHECK(history.events[3].details == "rank 1, incarnation 1, no heartbeat <10 s");
  CHECK(history.state == "finished");
}

TEST_CASE("The time of training adds up over the starts of a job, without the pauses") {
  CHECK(SampleHistory().seconds == Approx(5));
  const auto resumed = ParseHistory(std::string(kSampleMetrics) +
                                    "{\"event\":\"job_started\",\"time\":5000,\"clock\":20}\n"
                                    "{\"event\":\"checkpoint\",\"time\":5007}\n");
  CHECK(resumed.seconds == Approx(12));
}

TEST_CASE("The pause after a start that was killed is no time of training") {
  const auto resumed = ParseHistory(R"({"event":"job_started","time":100}
{"event":"step","time":110,"rank":0,"clock":5,"steps":5,"train_loss":0.5}
{"event":"server_registered","time":5000,"index":0}
{"event":"worker_registered","time":5001,"rank":0}
{"event":"job_started","time":5002}
{"event":"step","time":5006,"rank":0,"clock":9,"steps":4,"train_loss":0.5}
)");
  CHECK(resumed.seconds == Approx(14));
}

TEST_CASE("What a resumed run does again counts once, and what it does not stays") {
  // Rank 0 continues at clock 12: the clocks of its line from 10 to 20 are done again. Rank 1 had
  // gone further.
  const auto resumed =
      ParseHistory(std::string(kSampleMetrics) + R"({"event":"job_started","time":5000,"clock":12}
{"event":"step","time":5001,"rank":0,"clock":17,"steps":5,"train_loss":0.5}
{"event":"step","time":5002,"rank":0,"clock":20,"steps":3,"train_loss":0.5}
{"event":"step","time":5002,"rank":1,"clock":24,"steps":4,"train_loss":0.5}
{"event":"evaluation","time":5002,"clock":8,"test_loss":1}
)");
  const auto totals = SumByWorker(resumed);
  CHECK(totals.at(0).steps() == 18);
  CHECK(totals.at(0).clock() == 20);
  CHECK(totals.at(1).steps() == 24);
  REQUIRE(resumed.evaluations.size() == 1);
  CHECK(resumed.evaluations[0].clock() == 8);
  CHECK(resumed.state.empty());
}

TEST_CASE("What was done before a resume with longer clocks stays") {
  const auto resumed =
      ParseHistory(R"({"event":"job_started","time":1,"clock":0,"workers":1,"steps_per_clock":1}
{"event":"step","time":2,"rank":0,"clock":40,"steps":40,"train_loss":0.5}
{"event":"job_started","time":3,"clock":40,"workers":1,"steps_per_clock":20}
{"event":"step","time":4,"rank":0,"clock":42,"steps":40,"train_loss":0.5}
)");
  CHECK(SumByWorker(resumed).at(0).steps() == 80);
  CHECK(SumByWorker(resumed).at(0).clock() == 42);
}

TEST_CASE("Workers' totals are sums over their steps") {
  const auto totals = SumByWorker(SampleHistory());
  REQUIRE(totals.size() == 2);
  const v1::StepMetrics& first = totals.at(0);
  CHECK(first.steps() == 20);
  CHECK(first.examples() == 640);
  CHECK(first.compute_seconds() == Approx(1.2));
  CHECK(first.backward_seconds() == Approx(0.4));
  // The first line is from a version without wait_seconds: the whole exchange counts as waiting.
  CHECK(first.exchange_seconds() == Approx(1.0));
  CHECK(first.wait_seconds() == Approx(0.6));
  CHECK(StepSeconds(first) == Approx(2.0));
  CHECK(*HiddenShare(first) == Approx(0.4));
  CHECK_FALSE(HiddenShare({}).has_value());
  CHECK(totals.at(1).staleness() == 3);
  CHECK(totals.at(1).clock() == 20);
}

TEST_CASE("A last line that was cut short is passed over, any other that is none is counted") {
  const std::string good = kSampleMetrics;
  const RunHistory cut = ParseHistory(good + "{\"event\":\"st");
  CHECK(cut.steps.size() == 4);
  CHECK(cut.Gaps().empty());
  const RunHistory bad = ParseHistory("{\"event\":\"step\"}\nnonsense\n[]\n{\"event\":\"step\"}\n");
  CHECK(bad.steps.size() == 2);
  CHECK(bad.file.lines_skipped == 2);
  CHECK(absl::StartsWith(bad.Gaps(), "2 unreadable lines are skipped"));
  CHECK(absl::StrContains(bad.Gaps(), "line 2: "));
}

TEST_CASE(
    "What is wrong with a line is said with one line number, in bytes that harm no terminal") {
  const TempFolder folder;
  const std::string file = folder / "metrics.jsonl";
  REQUIRE(WriteFileAtomically(file, "{\"event\":\"step\"}\n{\"\xff\x1b[2J\": 1}\n").ok());
  const RunHistory history = ReadHistory(file);
  CHECK(history.file.name == file);
  CHECK(history.file.first_skipped == "line 2: not JSON from byte 3 on");
  CHECK(ParseHistory("{\"event\": 7}\n").file.first_skipped ==
        "line 1: type must be string, but is number");
}

// A bad line costs only that line, wherever it is and however it is bad.
TEST_CASE("A bad line costs itself alone") {
  const std::vector<std::string> bad = {
      "nonsense",
      "[]",
      "{}",
      "7",
      "null",
      std::string("\0\xff\x01", 3),
      std::string(60 << 20, 'x'),
      "{\"event\":\"step\",\"rank\":0,\"epoch\":NaN,\"steps\":5}",
      "{\"event\":\"step\",\"rank\":0,\"epoch\":null,\"steps\":5}",
      "{\"event\":\"step\",\"rank\":0,\"steps\":5",
      "{\"event\":7}",
      "{\"event\":\"step\",\"rank\":\"x\"}",
      "{\"event\":\"step\",\"rank\":4294967296}",
      "{\"event\":\"step\",\"clock\":18446744073709551615}",
      "{\"event\":\"step\",\"data_seconds\":-1}",
      "{\"event\":\"step\",\"epoch\":-3}",
      "{\"event\":\"step\",\"staleness\":-1}",
      "{\"event\":\"step\",\"staleness\":1.5}",
      "{\"event\":\"step\",\"staleness\":1e70}",
      "{\"event\":\"step\",\"wait_seconds\":1e999}",
      "{\"event\":\"evaluation\",\"test_accuracy\":7}",
      "{\"event\":\"job_finished\",\"state\":3}",
      std::string(1 << 19, '[')};
  const std::vector<std::string> lines = absl::StrSplit(kSampleMetrics, '\n', absl::SkipEmpty());
  const RunHistory whole = SampleHistory();
  const TempFolder folder;
  for (const std::string& line : bad) {
    INFO(line.substr(0, 100));
    for (const size_t place : {size_t{0}, lines.size() / 2, lines.size()}) {
      std::vector<std::string> damaged = lines;
      damaged.insert(damaged.begin() + static_cast<ptrdiff_t>(place), line);
      const std::string text = absl::StrJoin(damaged, "\n") + "\n";
      REQUIRE(WriteFileAtomically(folder / "metrics.jsonl", text).ok());
      for (const RunHistory& history :
           {ParseHistory(text), ReadHistory(folder / "metrics.jsonl")}) {
        CHECK(history.file.lines_skipped == 1);
        CHECK(
            absl::StrContains(history.file.first_skipped, absl::StrCat("line ", place + 1, ": ")));
        CHECK(history.file.first_skipped.size() < 2000);
        CHECK(history.steps.size() == whole.steps.size());
        CHECK(history.seconds == whole.seconds);
        CHECK(history.state == "finished");
      }
    }
  }
}

// With any one bit flipped the history can be read, and at most one of its lines is missing.
TEST_CASE("A flipped bit costs a line at most") {
  const std::string whole = kSampleMetrics;
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const RunHistory history = ParseHistory(damaged);
    // A flipped end of line joins two lines.
    CHECK(history.steps.size() + 2 >= SampleHistory().steps.size());
    CHECK(history.file.lines_skipped <= 2);
    CHECK(history.steps.size() + history.events.size() + history.evaluations.size() +
              history.file.lines_skipped + 1 >=
          11);
  }
}

TEST_CASE("What cannot be read at all is a history without lines that says why") {
  const TempFolder folder;
  REQUIRE(MakeFolders(folder / "metrics.jsonl").ok());
  const RunHistory history = ReadHistory(folder / "metrics.jsonl");
  CHECK(history.steps.empty());
  CHECK(absl::StrContains(history.Gaps(), "not a regular file"));
}

RunHistory::Step Clocks(uint32_t rank, uint64_t clock, uint64_t steps) {
  RunHistory::Step step{.rank = rank};
  step.metrics.set_clock(clock);
  step.metrics.set_steps(steps);
  step.metrics.set_examples(32 * steps);
  step.metrics.set_train_loss(2);
  return step;
}

// 4 GiB of lines would take minutes; a builder with less room shows the same.
TEST_CASE("A long history is merged, and its sums stay what they are") {
  HistoryBuilder builder(64);
  for (uint64_t clock = 10; clock <= 100'000; clock += 10) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      RunHistory::Step step = Clocks(rank, clock, 10);
      if (rank == 1) step.metrics.clear_train_loss();
      step.metrics.set_staleness(clock == 500 ? 7 : 1);
      step.metrics.set_compute_seconds(0.5);
      builder.AddStep(step);
    }
  }
  // Rank 2 does the clocks from 60,000 on again, and comes to 60,020.
  builder.Restart();
  builder.AddStep(Clocks(2, 60'020, 20));
  const RunHistory history = builder.Finish();
  CHECK(history.steps.size() < 128);
  const auto totals = SumByWorker(history);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CHECK(totals.at(rank).steps() == 100'000);
    CHECK(totals.at(rank).examples() == 3'200'000);
    CHECK(totals.at(rank).compute_seconds() == Approx(5'000));
    CHECK(totals.at(rank).staleness() == 7);
  }
  CHECK(totals.at(2).steps() == 60'020);
  CHECK(totals.at(2).clock() == 60'020);
  for (const RunHistory::Step& step : history.steps) {
    CHECK(step.metrics.train_loss() == Approx(step.rank == 1 ? 0 : 2));
  }
}

TEST_CASE("Events and evaluations of a long history are bounded, and the newest stay") {
  HistoryBuilder builder;
  constexpr uint64_t kMany = 100'000;
  for (uint64_t i = 1; i <= kMany; ++i) {
    v1::EvaluationMetrics evaluation;
    evaluation.set_clock(i);
    builder.AddEvaluation(evaluation);
    builder.AddEvent({.name = std::to_string(i), .details = ""});
  }
  const RunHistory history = builder.Finish();
  CHECK(history.evaluations.size() < HistoryBuilder::kEvaluationsMax);
  CHECK(history.evaluations.back().clock() == kMany);
  CHECK(history.events.size() + history.events_left_out == kMany);
  CHECK(history.events.size() < 2 * HistoryBuilder::kEventsMax);
  CHECK(history.events.back().name == std::to_string(kMany));
}

TEST_CASE("Evaluations of after the clock that a job went back to are no part of it") {
  const auto history = ParseHistory(R"({"event":"job_started","time":1,"clock":0}
{"event":"evaluation","time":2,"clock":10,"test_loss":3}
{"event":"evaluation","time":3,"clock":20,"test_loss":2}
{"event":"evaluation","time":4,"clock":30,"test_loss":1}
{"event":"went_back","time":5,"clock":20,"message":"server 1 was lost"}
)");
  REQUIRE(history.evaluations.size() == 2);
  CHECK(history.evaluations[1].clock() == 20);
}

TEST_CASE("Clocks that are done again after going back, or after a crash, are counted once each") {
  const auto of = [](const std::string& lines) {
    return ParseHistory("{\"event\":\"job_started\",\"time\":1,\"clock\":0}\n" + lines);
  };
  const std::string steps = R"({"event":"step","time":2,"rank":0,"clock":30,"steps":30}
{"event":"step","time":2,"rank":1,"clock":28,"steps":28}
)";
  CHECK(of(steps).rewinds.times == 0);
  const auto back = of(steps + R"({"event":"went_back","time":5,"clock":20}
{"event":"went_back","time":6,"clock":20}
{"event":"step","time":7,"rank":0,"clock":25,"steps":5}
{"event":"job_started","time":8,"clock":20}
)");
  CHECK(back.rewinds.times == 3);
  CHECK(back.rewinds.clocks == 15);
  // Server 0 was started again, and the others had gone on.
  const auto taken_up = of(steps + R"({"event":"job_started","time":8,"goes_on":true}
{"event":"step","time":9,"rank":0,"clock":31,"steps":1}
)");
  CHECK(taken_up.rewinds.times == 0);
  CHECK(taken_up.rewinds.clocks == 0);
  // The run was stopped with a checkpoint, and resumed where it was.
  const auto resumed = of(steps + R"({"event":"job_started","time":8,"clock":30}
)");
  CHECK(resumed.rewinds.times == 0);
  CHECK(resumed.rewinds.clocks == 0);
}

TEST_CASE("Whoever counts evaluations is given each of them") {
  const TempFolder folder;
  std::string lines;
  constexpr uint64_t kMany = HistoryBuilder::kEvaluationsMax + 10;
  for (uint64_t i = 1; i <= kMany; ++i) {
    absl::StrAppend(&lines, R"({"event":"evaluation","time":1,"clock":)", i,
                    R"(,"test_loss":null})", "\n");
  }
  const std::string file = folder / "metrics.jsonl";
  REQUIRE(WriteFileAtomically(file, lines).ok());
  CHECK(ReadHistory(file).evaluations.size() < kMany);
  const auto all = ReadWithAllEvaluations(file).evaluations;
  REQUIRE(all.size() == kMany);
  CHECK(std::isnan(all[7].test_loss()));
}

TEST_CASE("A run without metrics is an empty history") {
  const TempFolder folder;
  const RunHistory history = ReadHistory(folder / "metrics.jsonl");
  CHECK(history.steps.empty());
  CHECK(history.state.empty());
  CHECK(history.Gaps().empty());
}

}  // namespace leeway::history
