// leeway data: each kind of file is known by its content, and the part of a job that is printed
// reads it.
#include "launcher/inspect/inspect.h"

#include <cstring>

#include "absl/strings/str_replace.h"
#include "config/job.h"
#include "launcher/inspect/statistics.h"
#include "launcher/inspect/table_guess.h"
#include "tests/worker/data/pictures/picture_files.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/sources/training_data.h"

namespace leeway::inspect {
namespace {

using absl::StatusCode;

Inspection Inspected(const DataFolder& folder, const std::vector<std::string>& names) {
  auto inspection = InspectData(folder.path(), names);
  INFO(inspection.status().ToString());
  REQUIRE(inspection.ok());
  return *std::move(inspection);
}

void CheckHas(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    INFO(text << "\nexpected: " << part);
    CHECK(text.find(part) != std::string::npos);
  }
}

// The job of which the printed part is the data.
v1::TrainingJob JobWith(const Inspection& inspection, const std::string& loss) {
  const auto job = ParseJob(
      "apiVersion: leeway/v1\nkind: TrainingJob\nmetadata: {name: printed}\n"
      "model: {layers: [{dense: {units: 300}}], loss: " +
          loss + "}\n" + inspection.data +
          "exchange: {type: gradient}\nconsistency: {mode: sync}\n"
          "update: {type: sgd, learning_rate: 0.1}\nstop: {epochs: 1}\n",
      "job.yaml", {});
  INFO(inspection.data << job.status().ToString());
  REQUIRE(job.ok());
  return *job;
}

// That the printed part reads so many examples, to train on and held out, of this shape.
void CheckReads(const DataFolder& folder, const Inspection& inspection, size_t train, size_t test,
                const ImageShape& shape, const std::string& loss = "softmax_cross_entropy") {
  const v1::TrainingJob job = JobWith(inspection, loss);
  const auto data = TrainingData::Open(job, folder.path(), 0);
  INFO(inspection.data << data.status().ToString());
  REQUIRE(data.ok());
  CHECK((*data)->examples() == train);
  CHECK((*data)->shape() == shape);
  const auto held = OpenTestData(job, folder.path());
  REQUIRE(held.ok());
  CHECK((*held)->size() == test);
}

FileBytes Npy(const std::string& type, const std::string& shape, const FileBytes& elements) {
  const std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + "}\n";
  FileBytes out = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<uint8_t>(header.size()), 0};
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), elements.begin(), elements.end());
  return out;
}

TEST_CASE("IDX, CIFAR and NumPy files are known by their content, in any order, packed or not") {
  DataFolder folder;
  FileBytes labels(40);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<uint8_t>(i % 4);
  folder.Write("a", Gzip(IdxBytes({40, 3, 2}, FileBytes(240, 51))));
  folder.Write("b", IdxBytes({40}, labels));
  Inspection found = Inspected(folder, {"b", "a"});
  CheckHas(found.summary,
           {"b: IDX labels", "a: IDX images", "40 examples of 3x2x1", "0 to 3",
            "examples of each: 10, 10, 10, 10", "Mean: 0.2\nDeviation: 0\n", "Missing values: 0"});
  CheckHas(found.data, {"images: \"a\", labels: \"b\"", "std: [1]"});
  CheckReads(folder, found, 36, 4, {3, 2, 1});
  RequireError(InspectData(folder.path(), {"a"}), StatusCode::kInvalidArgument, {"name both"});

  FileBytes ten, hundred;
  for (size_t i = 0; i < 20; ++i) {
    ten.push_back(static_cast<uint8_t>(i % 10));
    hundred.insert(hundred.end(),
                   {static_cast<uint8_t>(i % 20), static_cast<uint8_t>(80 + i % 20)});
    for (FileBytes* bytes : {&ten, &hundred}) bytes->insert(bytes->end(), 3072, 255);
  }
  folder.Write("ten", ten);
  folder.Write("hundred", hundred);
  found = Inspected(folder, {"ten", "ten"});
  CheckHas(found.summary, {"CIFAR-10 records", "40 examples of 32x32x3", "Mean: 1, 1, 1\n"});
  CheckReads(folder, found, 36, 4, {32, 32, 3});
  found = Inspected(folder, {"hundred"});
  CheckHas(found.summary, {"CIFAR-100 records", "80 to 99"});
  CheckReads(folder, found, 18, 2, {32, 32, 3});

  folder.Write("x.npy", Npy("|i1", "(40, 5)", FileBytes(200, 7)));
  folder.Write("y.npy", Npy("|u1", "(40,)", labels));
  found = Inspected(folder, {"y.npy", "x.npy"});
  CheckHas(found.summary, {"y.npy: a NumPy array", "40 examples of 5 features", "Mean: 7, 7"});
  CheckReads(folder, found, 36, 4, {1, 1, 5});
  RequireError(InspectData(folder.path(), {"x.npy"}), StatusCode::kInvalidArgument, {"two arrays"});
}

TEST_CASE("Tables are known with their separator, first line, missing values and labels") {
  DataFolder folder;
  std::string text = "height;weight;kind\n";
  for (int i = 0; i < 30; ++i) {
    text += std::to_string(i) + ".5;" + (i % 10 == 3 ? "?" : std::to_string(2 * i)) + ";" +
            std::to_string(i % 3) + "\n";
  }
  folder.Write("table", text);
  Inspection found = Inspected(folder, {"table"});
  CheckHas(found.summary, {"lines of separated numbers", "30 examples of 2 features", "0 to 2",
                           "Mean: 15, 29.33", "Missing values: 3"});
  CheckHas(found.data, {"separator: \";\"", "skip_lines: 1", "missing: \"?\""});
  CheckReads(folder, found, 27, 3, {1, 1, 2});
  // Labels in the first column, numbers in the last.
  text = "";
  for (int i = 0; i < 30; ++i) text += std::to_string(i % 2) + ",1,0." + std::to_string(i) + "\n";
  folder.Write("table", text);
  found = Inspected(folder, {"table"});
  CheckHas(found.data, {"label_column: 0"});
  CheckReads(folder, found, 27, 3, {1, 1, 2});
  CHECK_FALSE(GuessTable("a word\nanother one\n").has_value());
  CHECK_FALSE(GuessTable("1\n2\n3\n").has_value());
  CHECK_FALSE(GuessTable("1,2\n3,4,5\n6,7\n").has_value());
}

TEST_CASE("LIBSVM lines, texts and pictures are known") {
  DataFolder folder;
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += std::string(i % 2 ? "+1" : "-1") + " 3:1 17:0.5\n";
  folder.Write("svm", lines);
  Inspection found = Inspected(folder, {"svm"});
  CheckHas(found.summary, {"LIBSVM lines", "20 examples of 17 features", "loss: logistic",
                           "examples of each: 10, 0, 10"});
  CheckReads(folder, found, 18, 2, {1, 1, 17}, "logistic");

  std::string text;
  for (int i = 0; i < 100; ++i) text += "To be, or not to be:\nthat is the question.\n";
  folder.Write("play", text);
  found = Inspected(folder, {"play"});
  CheckHas(found.summary, {"play: text", "characters, of which 18 are different"});
  const uint32_t context = static_cast<uint32_t>(text.size() / 40);
  CheckReads(folder, found, text.size() * 9 / 10 / context - 1, (text.size() / 10 - 1) / context,
             {context, 1, 1});

  for (int i = 0; i < 20; ++i) {
    folder.Write("pictures/" + std::to_string(i % 2) + "/" + std::to_string(i) + ".png",
                 Png(9, 7, FileBytes(9 * 7 * 3, 102).data(), PNG_FORMAT_RGB));
  }
  found = Inspected(folder, {"pictures"});
  CheckHas(found.summary, {"a folder of pictures", "20 pictures", "7x7x3", "Mean: 0.4, 0.4, 0.4"});
  CheckReads(folder, found, 18, 2, {7, 7, 3});
}

TEST_CASE("What is no data, or does not go together, is an error that says what it is") {
  DataFolder folder;
  folder.Write("table", std::string("1,2\n3,4\n"));
  folder.Write("play", std::string("To be, or not to be\n"));
  folder.Write("noise", FileBytes{0xff, 0xfe, 0, 1, 2, 3, 4, 5, 6});
  RequireError(InspectData(folder.path(), {"table", "play"}), StatusCode::kInvalidArgument,
               {"table is lines of separated numbers and play is text"});
  RequireError(InspectData(folder.path(), {"noise"}), StatusCode::kInvalidArgument,
               {"noise: no kind of data that jobs read"});
  RequireError(InspectData(folder.path(), {"absent"}), StatusCode::kNotFound, {"absent"});
  RequireError(InspectData(folder.path(), {"../x"}), StatusCode::kInvalidArgument, {"'..'"});
}

TEST_CASE("Mean and deviation are those of all values, of each column by itself") {
  const Examples examples{{1, 1, 2}, std::vector<float>{1, 10, 3, NAN, 5, 30}, {0, 1, 2}};
  const ValueStatistics values = StatisticsOf(examples);
  CHECK(values.mean == std::vector<double>{3, 20});
  CHECK(values.deviation[0] == Approx(std::sqrt(8.0 / 3)));
  CHECK(values.deviation[1] == 10);
  CHECK(values.missing == 1);
  const std::vector<float> labels = {2, 5, 2};
  CHECK(StatisticsOf(labels).counts == std::vector<uint64_t>{2, 0, 0, 1});
  CHECK(StatisticsOf(std::vector<float>{0.5, 1}).counts.empty());
}

}  // namespace
}  // namespace leeway::inspect
