#include "launcher/supervision/live_view.h"

#include "common/text/format.h"
#include "tests/catch.h"

namespace leeway::live_view {
namespace {

v1::JobStatus Running(int workers) {
  v1::JobStatus status;
  status.set_name("digits");
  status.set_state(v1::JOB_RUNNING);
  status.set_clocks(1000);
  status.set_seconds(75);
  status.set_max_staleness(3);
  status.add_servers();
  status.add_servers();
  for (int i = 0; i < workers; ++i) {
    v1::WorkerStatus* worker = status.add_workers();
    worker->set_rank(i);
    worker->set_state("running");
    worker->set_clock(250);
    worker->set_epoch(1.5);
    worker->set_examples(64000);
    worker->set_samples_per_second(12345.6);
    worker->set_train_loss(0.25);
    worker->set_staleness(i);
    worker->set_wait_share(0.124);
  }
  return status;
}

}  // namespace

TEST_CASE("The live view has a line a worker between title, bar and figures") {
  v1::JobStatus status = Running(2);
  status.mutable_workers(1)->set_waiting("worker 0 at clock 250");
  status.mutable_workers(1)->set_hidden_share(0.876);
  v1::EvaluationMetrics* evaluation = status.add_evaluations();
  evaluation->set_test_accuracy(0.9712);
  ViewContext context;
  context.eta_seconds = 42;
  context.restarts = {0, 2};
  const auto lines = RenderLiveView(status, context, 120, 40);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0].text == "digits  running  2 servers, 2 workers  1:15");
  CHECK(lines[1].text ==
        "worker  state          clock    epoch  behind   samples/s       loss  waits  hidden  "
        "waiting for");
  CHECK(lines[2].text ==
        "     0  running          250     1.50       0      12,345     0.2500   12 %       -");
  CHECK(lines[3].text ==
        "     1  running          250     1.50       1      12,345     0.2500   12 %    88 %  "
        "worker 0 at clock 250  (2 restarts)");
  CHECK(lines[4].text.ends_with(" 25 %  clock 250 of 1,000  0:42 left"));
  CHECK(lines[5].text ==
        "loss 0.2500  test accuracy 97.12 %  24,691 samples/s  staleness at most 3");
}

TEST_CASE("A run that becomes much worse says so while it trains") {
  v1::JobStatus status = Running(1);
  for (const double accuracy : {0.9712, 0.2031}) {
    v1::EvaluationMetrics* evaluation = status.add_evaluations();
    evaluation->set_clock(status.evaluations_size() * 1000);
    evaluation->set_test_accuracy(accuracy);
  }
  CHECK_THAT(RenderLiveView(status, {}, 160, 40).back().text,
             Catch::Matchers::Contains("test accuracy 20.31 %  GETTING WORSE: test accuracy was "
                                       "97.12 % at clock 1,000"));
}

TEST_CASE("A job that tells no loss shows none") {
  v1::JobStatus status = Running(1);
  status.mutable_workers(0)->clear_train_loss();
  const auto lines = RenderLiveView(status, {}, 120, 40);
  CHECK(lines[2].text ==
        "     0  running          250     1.50       0      12,345          -   12 %       -");
  CHECK(lines.back().text.find("loss") == std::string::npos);
}

TEST_CASE("Servers that have left are not counted, and what still moves is said") {
  v1::JobStatus status = Running(1);
  status.add_servers()->set_state("removed");
  status.set_message("3 shards to move, to 2 servers");
  const auto lines = RenderLiveView(status, {}, 120, 40);
  CHECK(lines[0].text == "digits  running  2 servers, 1 worker  1:15");
  CHECK(lines.back().text == "3 shards to move, to 2 servers");
}

TEST_CASE("A narrow terminal shows no shares") {
  const auto lines = RenderLiveView(Running(1), {}, 85, 40);
  CHECK(lines[1].text ==
        "worker  state          clock    epoch  behind   samples/s       loss  waiting for");
  CHECK(lines[2].text == "     0  running          250     1.50       0      12,345     0.2500");
}

TEST_CASE("No line is wider than the terminal") {
  v1::JobStatus status = Running(3);
  status.mutable_workers(2)->set_waiting(std::string(300, 'x'));
  status.set_message(std::string(300, 'y'));
  for (const size_t width : {1, 5, 20, 40, 79, 109, 110, 200}) {
    for (const ViewLine& line : RenderLiveView(status, {}, width, 40)) {
      CHECK(DisplayWidth(line.text) <= width);
    }
  }
}

TEST_CASE("More workers than the terminal has rows are summed up") {
  ViewContext context;
  context.notice = "stopping";
  const auto lines = RenderLiveView(Running(100), context, 80, 24);
  CHECK(lines.size() < 24);
  CHECK(lines[lines.size() - 4].text == "        and 83 more");
  CHECK(RenderLiveView(Running(100), context, 80, 1).size() < 8);
}

TEST_CASE("A lost worker is a warning that says since when") {
  v1::JobStatus status = Running(1);
  status.mutable_workers(0)->set_state("lost");
  status.mutable_workers(0)->set_seconds_since_heartbeat(12);
  const auto lines = RenderLiveView(status, {}, 120, 40);
  CHECK(lines[2].style == ViewLine::Style::kWarning);
  CHECK(lines[2].text.ends_with("no sign for 0:12"));
}

TEST_CASE("A worker that has not trained yet shows dashes, not zeros") {
  v1::JobStatus status = Running(1);
  status.mutable_workers(0)->set_examples(0);
  CHECK(RenderLiveView(status, {}, 120, 40)[2].text.ends_with(
      "-           -          -      -       -"));
}

TEST_CASE("The bar is as wide as asked at every share") {
  for (int percent = 0; percent <= 100; ++percent) {
    CHECK(DisplayWidth(ProgressBar(percent / 100.0, 30)) == 30);
  }
  CHECK(ProgressBar(0, 4) == "····");
  CHECK(ProgressBar(1, 4) == "████");
  CHECK(ProgressBar(0.5, 4) == "██··");
  CHECK(ProgressBar(0.625, 4) == "██▌·");
  CHECK(ProgressBar(7, 4) == "████");
}

TEST_CASE("The log line says what the view says, and why a job has not begun") {
  ViewContext context;
  context.eta_seconds = 9;
  CHECK(
      RenderLogLine(Running(2), context) ==
      "running  clock 250 of 1,000  loss 0.2500  24,691 samples/s  staleness at most 3  0:09 left");
  v1::JobStatus starting;
  starting.set_message("waiting for worker 1");
  CHECK(RenderLogLine(starting, {}) == "starting  waiting for worker 1");
}

}  // namespace leeway::live_view
