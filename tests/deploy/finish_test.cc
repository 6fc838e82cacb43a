// What a run leaves behind, and what is said of it, also where it has been started more than once.
#include "deploy/launcher/finish.h"

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "config/job.h"
#include "deploy/launcher/command_support.h"
#include "deploy/launcher/commands.h"
#include "deploy/launcher/run_folder.h"
#include "tests/catch.h"
#include "tests/deploy/sample_run.h"
#include "tests/temp_folder.h"

namespace leeway {
namespace {

constexpr char kQuickstart[] = LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml";

v1::TrainingJob Job(std::vector<std::string> sets = {}) {
  return LoadJob(kQuickstart, {.sets = std::move(sets), .environment = {}}).value();
}

void Write(const TempFolder& run, const std::string& file, const std::string& text) {
  REQUIRE(WriteFileAtomically(run / file, text).ok());
}

RunSummary Finish(const TempFolder& run, uint64_t ends_before, const std::string& failure = "") {
  FinishInput input;
  input.job = Job();
  input.run_dir = run.path();
  input.ends_before = ends_before;
  input.failure = failure;
  input.stop_requested = failure.empty();
  const auto summary = FinishRun(input);
  REQUIRE(summary.ok());
  return *summary;
}

std::string ReportOf(const TempFolder& run) {
  const char* arguments[] = {"leeway", "report", run.path().c_str()};
  REQUIRE(RunLeeway(3, arguments) == 0);
  return ReadFile(run / kReportFile, 1 << 20).value();
}

}  // namespace

TEST_CASE("How a run ended says what was restarted") {
  RunSummary summary;
  summary.state = "finished";
  CHECK_THAT(DescribeOutcome(summary, "/none", ""), Catch::Contains(", 0 restarts)"));
  summary.worker_restarts = {0, 1};
  CHECK_THAT(DescribeOutcome(summary, "/none", ""), Catch::Contains(", 1 restart)"));
  summary.server_restarts = {2, 0};
  CHECK_THAT(DescribeOutcome(summary, "/none", ""), Catch::Contains(", 3 restarts, 2 of servers)"));
}

TEST_CASE("A stopped run says how to go on, with the data folder that it was given") {
  RunSummary summary;
  summary.state = "stopped";
  summary.clock = 7;
  CHECK_THAT(DescribeOutcome(summary, "/run", ""), Catch::EndsWith("--resume --run-dir /run\n"));
  CHECK_THAT(DescribeOutcome(summary, "/run", "/digits"),
             Catch::EndsWith("--resume --run-dir /run --data /digits\n"));
}

TEST_CASE("A run that is stopped before it goes on is stopped, however it had ended before") {
  const TempFolder run;
  Write(run, kMetricsFile, kSampleMetrics);
  CHECK(Finish(run, 1).state == "stopped");
}

TEST_CASE("Why a resumed run failed is not what it had failed of before") {
  const TempFolder run;
  const std::string failed =
      R"({"event":"job_finished","time":2,"state":"failed","message":"old"})";
  Write(run, kMetricsFile, failed + "\n");
  CHECK(Finish(run, 1, "new").message == "new");
  // The coordinator's word for this start comes first.
  CHECK(Finish(run, 0, "new").message == "old");
}

TEST_CASE("The report of a resumed run is not that of its first end") {
  const TempFolder run;
  Write(run, kJobFile, ToYaml(Job()));
  Write(run, kMetricsFile, kSampleMetrics);
  RunSummary summary;
  summary.state = "finished";
  summary.test_accuracy = 0.8765;
  AddHistory(SampleHistory(), summary);
  Write(run, kSummaryFile, SummaryJson(summary));
  CHECK_THAT(ReportOf(run), Catch::Contains("87.65") && Catch::Contains("pill finished"));

  const std::string resumed =
      std::string(kSampleMetrics) + "{\"event\":\"job_started\",\"time\":5000}\n";
  Write(run, kMetricsFile, resumed);
  CHECK_THAT(ReportOf(run), Catch::Contains("pill unfinished"));
  Write(run, kMetricsFile,
        resumed + "{\"event\":\"job_finished\",\"time\":5007,\"state\":\"stopped\"}\n");
  CHECK_THAT(ReportOf(run), Catch::Contains("pill stopped"));
}

TEST_CASE("A run so far differs by what was changed, not by the codec that was chosen for it") {
  const v1::TrainingJob job = Job({"compression.contributions.type=auto"});
  v1::CheckpointManifest newest;
  *newest.mutable_job() = job;
  newest.mutable_job()->mutable_compression()->mutable_contributions()->mutable_int8();
  CHECK(ToYaml(JobSoFar(newest, job)) == ToYaml(job));
  const v1::TrainingJob longer = Job({"compression.contributions.type=auto", "stop.epochs=99"});
  CHECK(ToYaml(JobSoFar(newest, longer)) == ToYaml(job));
  // Without `auto` it is what it was.
  CHECK(JobSoFar(newest, Job()).compression().contributions().has_int8());
}

TEST_CASE("Where no coordinator is, what is said to be there is there") {
  const TempFolder run;
  CHECK_THAT(std::string(FindCoordinator(run.path()).status().message()),
             Catch::Contains("HOST:PORT") && !Catch::Contains(kSummaryFile));
  Write(run, kSummaryFile, "{}");
  CHECK_THAT(std::string(FindCoordinator(run.path()).status().message()),
             Catch::Contains(run / kSummaryFile));
  CHECK(*FindCoordinator("host:7000") == "host:7000");
  Write(run, kCoordinatorFile, "host:7001\n");
  CHECK(*FindCoordinator(run.path()) == "host:7001");
}

}  // namespace leeway
