// What a run leaves behind and what is reported about it, even if it was started more than once.
#include "launcher/finish/finish.h"

#include "common/exit_code.h"
#include "common/files/files.h"
#include "config/job.h"
#include "launcher/commands/commands.h"
#include "launcher/commands/running_job.h"
#include "launcher/finish/outcome_text.h"
#include "run/run_folder.h"
#include "tests/catch.h"
#include "tests/sample_run.h"
#include "tests/temp_folder.h"

namespace leeway::finish {
namespace {

constexpr char kQuickstart[] = LEEWAY_SOURCE_DIR "/config/jobs/quickstart.yaml";

v1::TrainingJob Job(std::vector<std::string> sets = {}) {
  return LoadJob(kQuickstart, {.sets = std::move(sets), .environment = {}}).value();
}

void Write(const TempFolder& run, const std::string& file, const std::string& text) {
  REQUIRE(WriteFileAtomically(run / file, text).ok());
}

// JOB_STARTING: the coordinator has not ended the job.
RunSummary Finish(const TempFolder& run, v1::JobState end, const std::string& failure = "",
                  bool stop_requested = false) {
  FinishInput input;
  input.job = Job();
  input.run_dir = run.path();
  if (end != v1::JOB_STARTING) {
    input.end.emplace().set_outcome(end);
    if (end == v1::JOB_FAILED) input.end->set_message("the coordinator's word");
  }
  input.failure = failure;
  input.stop_requested = stop_requested;
  return FinishRun(input);
}

std::string ReportOf(const TempFolder& run) {
  const char* arguments[] = {"leeway", "report", run.path().c_str()};
  REQUIRE(RunLeeway(3, arguments) == 0);
  return ReadFile(run / kReportFile, 1 << 20).value();
}

}  // namespace

TEST_CASE("A run whose workers may choose their device says where it had no GPU") {
  RunSummary summary;
  summary.state = "finished";
  const auto said = [&](std::vector<std::string> devices) {
    summary.by_rank.devices = std::move(devices);
    return DescribeOutcome(summary, {"/none", "/none"}, "");
  };
  CHECK_THAT(said({}), !Catch::Contains("CPU"));
  CHECK_THAT(said({"cuda", "cuda"}), !Catch::Contains("CPU"));
  CHECK_THAT(said({"cpu"}),
             Catch::Contains("\ncomputed on the CPU, because no worker could use a GPU "
                             "(workers.device: auto; see the workers' logs)\n"));
  CHECK_THAT(said({"cpu", "cuda", "cpu"}),
             Catch::Contains("\n2 of 3 workers computed on the CPU, because they could not"));
}

TEST_CASE("The exit code says what has become of the run") {
  RunSummary summary;
  for (const auto clock : {std::optional<uint64_t>(), std::optional<uint64_t>(7)}) {
    summary.model.clock = clock;
    summary.state = "finished";
    CHECK(ExitCodeOf(summary, {}, kExitPermanent) == kExitDone);
    summary.state = "failed";
    CHECK(ExitCodeOf(summary, {}, kExitTemporary) == kExitTemporary);
    CHECK(ExitCodeOf(summary, {}, kExitPermanent) == kExitPermanent);
    summary.state = "stopped";
    CHECK(ExitCodeOf(summary, {}, kExitPermanent) == (clock ? kExitStopped : kExitTemporary));
  }
}

TEST_CASE("Whether a failure may pass is its coordinator's word, not that of its exit code") {
  RunSummary summary;
  summary.state = "failed";
  v1::CoordinatorRecord end;
  end.set_outcome(v1::JOB_FAILED);
  // Server 0 ends with the one code for every failure.
  CHECK(ExitCodeOf(summary, end, kExitPermanent) == kExitTemporary);
  end.set_permanent(true);
  CHECK(ExitCodeOf(summary, end, kExitTemporary) == kExitPermanent);
  end.set_outcome(v1::JOB_STOPPED);
  CHECK(ExitCodeOf(summary, end, kExitPermanent) == kExitPermanent);
}

TEST_CASE("A stopped run says how to go on, with the data folder that it was given") {
  RunSummary summary;
  summary.state = "stopped";
  summary.model.clock = 7;
  CHECK_THAT(DescribeOutcome(summary, {"/run", "/run"}, ""),
             Catch::EndsWith("--resume --run-dir /run\n"));
  CHECK_THAT(DescribeOutcome(summary, {"/run", "/run"}, "/digits"),
             Catch::EndsWith("--resume --run-dir /run --data /digits\n"));
}

TEST_CASE("How a run ended is what its coordinator has on record, then what the launcher knows") {
  struct Case {
    v1::JobState end;
    const char* failure;
    bool stop_requested;
    const char* state;
    const char* message;
  };
  const char* kSilent =
      "the job's processes have ended, but coordinator.json does not say how the job ended";
  const Case cases[] = {
      // A job that finished without a checkpoint counts as failed, which is a different case.
      {v1::JOB_FAILED, "", false, "failed", "the coordinator's word"},
      {v1::JOB_FAILED, "worker 1 died", false, "failed", "the coordinator's word"},
      {v1::JOB_FAILED, "", true, "failed", "the coordinator's word"},
      {v1::JOB_STOPPED, "", true, "stopped", ""},
      // Another process has asked for the stop.
      {v1::JOB_STOPPED, "", false, "stopped", ""},
      // The launcher has asked for the stop, because it gave the job up.
      {v1::JOB_STOPPED, "worker 1 died", false, "failed", "worker 1 died"},
      // The coordinator did not exist yet.
      {v1::JOB_STARTING, "", true, "stopped", ""},
      {v1::JOB_STARTING, "worker 1 died", true, "failed", "worker 1 died"},
      {v1::JOB_STARTING, "", false, "failed", kSilent},
  };
  for (const Case& each : cases) {
    CAPTURE(each.end, each.failure, each.stop_requested);
    const TempFolder run;
    // Earlier ends in the metrics are ignored.
    Write(run, kMetricsFile, kSampleMetrics);
    const RunSummary summary = Finish(run, each.end, each.failure, each.stop_requested);
    CHECK(summary.state == each.state);
    CHECK(summary.message == each.message);
  }
}

TEST_CASE("A job that its coordinator calls finished is finished, whatever the launcher saw") {
  for (const char* failure : {"", "worker 1 failed for good"}) {
    const TempFolder run;
    // It fails only for its model, which is missing here.
    const RunSummary summary = Finish(run, v1::JOB_FINISHED, failure);
    CHECK_THAT(summary.message, Catch::StartsWith("reading the trained model"));
  }
}

TEST_CASE("The report of a resumed run is not that of its first end") {
  const TempFolder run;
  Write(run, kJobFile, ToYaml(Job()));
  Write(run, kMetricsFile, kSampleMetrics);
  RunSummary summary;
  summary.state = "finished";
  summary.test.emplace().metrics.set_test_accuracy(0.8765);
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
  // Without `auto` the compression stays as it was.
  CHECK(JobSoFar(newest, Job()).compression().contributions().has_int8());
}

TEST_CASE("Where no coordinator is, what is said to be there is there") {
  const TempFolder run;
  CHECK_THAT(std::string(FindCoordinator(run.path()).status().message()),
             Catch::Contains("HOST:PORT") && !Catch::Contains(kSummaryFile));
  Write(run, kSummaryFile, "{}");
  CHECK_THAT(std::string(FindCoordinator(run.path()).status().message()),
             Catch::Contains(run / kSummaryFile));
  CHECK(*FindCoordinator("127.0.0.1:7000") == "127.0.0.1:7000");
  CHECK(absl::IsInvalidArgument(FindCoordinator("no host:7000").status()));
  Write(run, kCoordinatorFile, "host:7001\n");
  CHECK(*FindCoordinator(run.path()) == "host:7001");
}

}  // namespace leeway::finish
