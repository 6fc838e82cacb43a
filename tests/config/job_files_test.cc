// The jobs that ship with the project, and how a file becomes a job.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <google/protobuf/util/message_differencer.h>

#include "common/philox.h"
#include "config/job.h"
#include "config/validate.h"
#include "tests/catch.h"
#include "tests/config/sample_job.h"

namespace leeway::job_files {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::Sample;

const std::filesystem::path kJobs = std::filesystem::path(LEEWAY_SOURCE_DIR) / "config" / "jobs";

std::vector<std::string> JobFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(kJobs)) {
    files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string TextOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

v1::TrainingJob Load(const std::string& path, const std::vector<std::string>& sets = {}) {
  absl::StatusOr<v1::TrainingJob> job = LoadJob(path, {sets, {}});
  INFO(path << ": " << job.status().ToString());
  REQUIRE(job.ok());
  return *job;
}

std::string Replace(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("every job that ships loads, is valid and bears its file's name") {
  const std::vector<std::string> files = JobFiles();
  CHECK(files.size() >= 13);
  for (const std::string& path : files) {
    const v1::TrainingJob job = Load(path);
    INFO(path);
    CHECK(ValidateJob(job).ToString() == "OK");
    CHECK(job.metadata().name() == std::filesystem::path(path).stem());
    CHECK((job.data().has_test() || job.data().has_holdout()));
  }
}

TEST_CASE("a resolved job written as YAML reads back to the same job") {
  for (const std::string& path : JobFiles()) {
    const v1::TrainingJob job = Load(path);
    const std::string yaml = ToYaml(job);
    INFO(yaml);
    const absl::StatusOr<v1::TrainingJob> again = ParseJob(yaml, "resolved", {});
    REQUIRE(again.status().ToString() == "OK");
    CHECK(MessageDifferencer::Equals(*again, job));
    CHECK(ToYaml(*again) == yaml);
    CHECK(JobSha256(*again) == JobSha256(job));
  }
}

TEST_CASE("texts and numbers of every kind survive the way through YAML") {
  v1::TrainingJob job = Load((kJobs / "heart-federated.yaml").string());
  v1::Csv& csv = *job.mutable_data()->mutable_train()->mutable_csv();
  for (const char* text :
       {"?",  "",   "~",  "null",     "true", "010", "a b", "a: b", "- a", "#", "\"", "'",
        "\\", "\t", "\n", "\xc3\xa9", "{",    "*a",  "&a",  "!a",   "%",   "@", "`",  "1e3"}) {
    csv.clear_missing();
    csv.add_missing(text);
    const auto again = ParseJob(ToYaml(job), "resolved", {});
    INFO(ToYaml(job));
    REQUIRE(again.status().ToString() == "OK");
    CHECK(again->data().train().csv().missing(0) == text);
  }
  for (const double value :
       {0.1, 1.0 / 3, 1e-300, 5e-324, 123456789.125, 1e15, 1.7e308, -2.5, 0.0}) {
    csv.set_label_above(value);
    const auto again = ParseJob(ToYaml(job), "resolved", {});
    REQUIRE(again.status().ToString() == "OK");
    CHECK(again->data().train().csv().label_above() == value);
  }
}

TEST_CASE("a table to evaluate on has the categories of the one to train on") {
  v1::TrainingJob job = Load((kJobs / "heart-federated.yaml").string());
  v1::Csv& train = *job.mutable_data()->mutable_train()->mutable_csv();
  train.set_label("price");
  train.add_ignore("");
  v1::Categories& wood = *train.add_categories();
  wood.set_column("wood");
  wood.add_values("no");
  wood.add_values("1");
  job.mutable_data()->clear_holdout();
  job.mutable_data()->mutable_test()->mutable_csv()->add_files("t");
  const auto again = ParseJob(ToYaml(job), "resolved", {});
  INFO(ToYaml(job));
  REQUIRE(again.status().ToString() == "OK");
  // There is no column number beside the name.
  CHECK_FALSE(again->data().train().csv().has_label_column());
  CHECK(again->data().train().csv().ignore(0).empty());
  CHECK(again->data().test().csv().label_column() == -1);
  REQUIRE(again->data().test().csv().categories_size() == 1);
  CHECK(again->data().test().csv().categories(0).values(0) == "no");
  CHECK(again->data().test().csv().categories(0).encoding() == v1::CATEGORY_ENCODING_ONE_HOT);
  CHECK(ToYaml(*again) == ToYaml(*ParseJob(ToYaml(*again), "resolved", {})));
}

TEST_CASE("the hash of a job is that of its resolved content") {
  const std::string text = TextOf((kJobs / "quickstart.yaml").string());
  const auto hash = [](const std::string& yaml) {
    return JobSha256(ParseJob(yaml, "job.yaml", {}).value());
  };
  CHECK(hash(text).size() == 64);
  CHECK(hash(text) == hash("# a comment\n" + text));
  // Writing a default out does not make another job.
  CHECK(hash(text) ==
        hash(Replace(text, "servers: {count: 2}", "servers: {block_bytes: 1048576, count: 2}")));
  CHECK(hash(text) != hash(Replace(text, "seed: 42", "seed: 43")));
}

TEST_CASE("the smallest job says what is trained on what, how and how long") {
  const std::string small =
      "model:\n  layers: [{dense: {units: 10}}]\n  loss: softmax_cross_entropy\n"
      "data: {train: {type: csv, files: /somewhere/a.csv}}\n"
      "update: {type: sgd, learning_rate: 0.1}\nstop: {epochs: 2}\n";
  const auto job = ParseJob(small, "job.yaml", {});
  REQUIRE(job.status().ToString() == "OK");
  const std::string spelled =
      "apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: job, seed: 0}\n"
      "exchange: {type: gradient}\nconsistency: {mode: sync}\n" +
      Replace(small, "a.csv}}", "a.csv}, batch_size: 32}") +
      "servers: {count: 1}\nworkers: {count: 1}\n";
  CHECK(JobSha256(*job) == JobSha256(ParseJob(spelled, "job.yaml", {}).value()));
  CHECK(ToYaml(*job).find("apiVersion: leeway/v1\nkind: TrainingJob\n") == 0);
}

TEST_CASE("defaults are written into the job") {
  const v1::TrainingJob job = ParseJob(Sample(), "job.yaml", {}).value();
  CHECK(job.has_servers());
  CHECK(job.servers().block_bytes() == 1048576);
  CHECK(job.data().partition().has_iid());
  CHECK(job.update().schedule().has_constant());
  CHECK(job.update().sgd().has_nesterov());
  CHECK(job.exchange().gradient().has_accumulation());
  CHECK_FALSE(job.has_evaluation());
  CHECK_FALSE(job.workers().has_emulate());
  CHECK_FALSE(job.has_compression());
  const auto compressed =
      ParseJob(Sample("stop:",
                      "compression: {weights: {type: int8}, layers: [{names: dense_1, "
                      "contributions: {type: top_k}}]}\nstop:"),
               "job.yaml", {});
  REQUIRE(compressed.status().ToString() == "OK");
  CHECK(compressed->compression().contributions().has_none());
  CHECK(compressed->compression().layers(0).contributions().top_k().has_share());
  CHECK_FALSE(compressed->compression().layers(0).has_weights());
  const auto pooled = ParseJob(Sample("- flatten: {}", "- max_pool: {size: 3}"), "job.yaml", {});
  CHECK(pooled.value().model().layers(0).max_pool().stride() == 3);
}

TEST_CASE("one word takes the quickstart from mode to mode and to elastic averaging") {
  const std::string text = TextOf((kJobs / "quickstart.yaml").string());
  const v1::TrainingJob sync = ParseJob(text, "job.yaml", {}).value();
  CHECK(sync.consistency().mode() == v1::CONSISTENCY_MODE_SYNC);
  CHECK_FALSE(sync.consistency().has_staleness());

  const auto bounded = ParseJob(Replace(text, "mode: sync", "mode: bounded"), "job.yaml", {});
  REQUIRE(bounded.status().ToString() == "OK");
  CHECK(bounded->consistency().mode() == v1::CONSISTENCY_MODE_BOUNDED);
  CHECK(bounded->consistency().staleness() == 3);

  const auto async = ParseJob(Replace(text, "mode: sync", "mode: async"), "job.yaml", {});
  REQUIRE(async.status().ToString() == "OK");
  CHECK(async->consistency().mode() == v1::CONSISTENCY_MODE_ASYNC);

  const auto elastic = ParseJob(Replace(text, "type: gradient", "type: elastic"), "job.yaml", {});
  REQUIRE(elastic.status().ToString() == "OK");
  CHECK_FALSE(elastic->has_update());
  CHECK(elastic->exchange().elastic().alpha() == 0.9 / 3);
  CHECK(elastic->exchange().elastic().every() == 10);
  CHECK(MessageDifferencer::Equals(elastic->exchange().elastic().optimizer(), sync.update()));
}

TEST_CASE("a file that cannot be read is named") {
  CHECK(LoadJob("/nowhere/job.yaml", {}).status().code() == absl::StatusCode::kNotFound);
  CHECK(LoadJob("/nowhere/job.yaml", {}).status().message().find("/nowhere/job.yaml") !=
        absl::string_view::npos);
  CHECK_FALSE(LoadJob("/", {}).ok());
}

// For any bytes, the reader answers, and a job that it accepts is valid.
void CheckAnswers(const std::string& yaml) {
  const absl::StatusOr<v1::TrainingJob> job = ParseJob(yaml, "job.yaml", {});
  if (job.ok()) {
    const bool valid = ValidateJob(*job).ok();
    if (!valid) FAIL_CHECK("accepted and invalid: " << yaml);
  } else if (job.status().code() != absl::StatusCode::kInvalidArgument) {
    FAIL_CHECK(job.status().ToString());
  }
}

TEST_CASE("every truncation of a job file is answered") {
  const std::string text = TextOf((kJobs / "cifar10-cnn.yaml").string());
  for (size_t size = 0; size < text.size(); ++size) CheckAnswers(text.substr(0, size));
}

TEST_CASE("changed bytes in a job file are answered") {
  const std::string bytes = std::string("{}[]:,-#&*!|>'\"%@` \n\t0?.") + '\0' + "\xff";
  RandomStream random(1, RandomPurpose::kGenerate);
  const std::string text = Sample();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char byte : bytes) {
      std::string changed = text;
      changed[at] = byte;
      CheckAnswers(changed);
    }
  }
  for (int round = 0; round < 2000; ++round) {
    std::string changed = text;
    for (uint64_t edits = 1 + random.Below(8); edits > 0; --edits) {
      changed[random.Below(changed.size())] = bytes[random.Below(bytes.size())];
    }
    CheckAnswers(changed);
  }
}

TEST_CASE("texts made to be deep or long are answered soon") {
  const size_t size = (1 << 20) - 8;
  for (const char* unit : {"[",   "{",   "- ", "? ",  "a: ", "{a: ", "[a, ",  "\"", "'",  "&a ",
                           "!a ", "|\n", "%",  "a\n", ": ",  "*a ",  "---\n", "#",  "\t", "[[],"}) {
    std::string yaml;
    while (yaml.size() < size) yaml += unit;
    CheckAnswers(yaml.substr(0, size));
  }
}

}  // namespace
}  // namespace leeway::job_files
