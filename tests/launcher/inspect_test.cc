// leeway data: it knows each kind of file by its content, and the part of a job that it prints
// reads the file.
#include "launcher/inspect/inspect.h"

#include "config/job.h"
#include "launcher/inspect/array_pairs.h"
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

// Returns a job whose data is the printed part.
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

// Checks that the printed part reads this number of examples to train on and held out, of this
// shape.
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
  RequireError(InspectData(folder.path(), {"x.npy"}), StatusCode::kInvalidArgument,
               {"x.npy: x has no labels"});
}

TEST_CASE("Tables are known with their separator, first line, missing values and labels") {
  DataFolder folder;
  std::string text = "height;weight;class\n";
  for (int i = 0; i < 30; ++i) {
    text += std::to_string(i) + ".5;" + (i % 10 == 3 ? "?" : std::to_string(2 * i)) + ";" +
            std::to_string(i % 3) + "\n";
  }
  folder.Write("table", text);
  Inspection found = Inspected(folder, {"table"});
  CheckHas(found.summary,
           {"table: a table", "30 examples of 2 features", "Features: height, weight\n",
            "Label: column 'class'", "0 to 2", "Mean: 15, 29.33", "Missing values: 3"});
  CheckHas(found.data, {"separator: \";\"", "label: \"class\"", "missing: [\"?\"]"});
  CheckReads(folder, found, 27, 3, {1, 1, 2});
  CHECK(GuessTable("a word\nanother one\n") == std::nullopt);
  CHECK(GuessTable("1\n2\n3\n") == std::nullopt);
  CHECK(GuessTable("1,2\n3,4,5\n6,7\n") == std::nullopt);
  CHECK(GuessTable("To be, or not\nto be, that\nis it, now\nnot, so\n") == std::nullopt);
}

// Tables as pandas, R and spreadsheets write them.
TEST_CASE("Tables with texts, quotes, a byte order mark, an index and names are read as printed") {
  DataFolder folder;
  const bool spreadsheet = GENERATE(false, true);
  const char separator = spreadsheet ? ';' : ',';
  std::string text = spreadsheet ? "\xef\xbb\xbf" : "";
  const auto line = [&](const std::vector<std::string>& values) {
    for (size_t i = 0; i < values.size(); ++i)
      text += (i > 0 ? std::string(1, separator) : "") + values[i];
    text += spreadsheet ? "\r\n" : "\n";
  };
  line({"", "name", "size", "\"kind of wood\"", "price"});
  for (int i = 0; i < 120; ++i) {
    line({std::to_string(i), "\"N, " + std::to_string(i) + "\"",
          i % 7 == 2 ? "" : std::to_string(i % 5) + ".5",
          i % 7 == 3 ? "NA"
          : i % 2    ? "oak"
                     : "\"elm\"",
          std::to_string(100 * i) + ".25"});
  }
  folder.Write("houses.csv", text);
  // The names do not say which column has the labels.
  RequireError(InspectData(folder.path(), {"houses.csv"}), StatusCode::kInvalidArgument,
               {"houses.csv: which column is the label?", "--label", "'size'", "'price'"});
  RequireError(InspectData(folder.path(), {"houses.csv"}, "cost"), StatusCode::kInvalidArgument,
               {"--label 'cost'", "no such column", "'price'"});
  const auto found = InspectData(folder.path(), {"houses.csv"}, "price");
  INFO(found.status().ToString());
  REQUIRE(found.ok());
  CheckHas(found->summary,
           {"120 examples of 3 features", "Features: size, kind of wood=elm, kind of wood=oak\n",
            "Left out: '' (an index), 'name' (more than 100 different texts)",
            "numbers from 0.25 to 11900.2 (loss: squared)", "Missing values: 34"});
  CheckHas(found->data, {"label: \"price\"", "ignore: [\"\", \"name\"]", "missing: [\"\", \"NA\"]",
                         "{column: \"kind of wood\", values: [\"elm\", \"oak\"]}", ", 0, 0]"});
  CheckReads(folder, *found, 108, 12, {1, 1, 3}, "squared");
}

TEST_CASE("A table's label is guessed only where it shows, and texts become classes") {
  DataFolder folder;
  const auto write = [&](auto row) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += row(i) + "\n";
    folder.Write("t", text);
  };
  const auto n = [](int number) { return std::to_string(number); };
  const auto asks = [&] {
    RequireError(InspectData(folder.path(), {"t"}), StatusCode::kInvalidArgument,
                 {"t: which column is the label?", "--label, with a number from 0"});
  };
  // The Iris data.
  write([&](int i) { return n(i) + ".5," + n(i % 7) + ".25," + (i % 3 ? "setosa" : "virginica"); });
  Inspection found = Inspected(folder, {"t"});
  CheckHas(found.summary, {"Label: column '2'; 'setosa' is 0, 'virginica' is 1", "0 to 1"});
  CheckReads(folder, found, 36, 4, {1, 1, 2});
  // A regression with a feature of few whole numbers, in the first column or another one.
  write([&](int i) { return n(i % 3) + "," + n(i) + ".5," + n(i) + ".75"; });
  asks();
  write([&](int i) { return n(100 * (i % 4)) + "," + n(i) + ".5," + n(i) + ".75"; });
  found = Inspected(folder, {"t"});
  CheckHas(found.summary, {"Label: column '2'", "loss: squared"});
  // Classes in the first and last columns; texts beside a last column of numbers.
  write([&](int i) { return n(i % 2) + "," + n(i) + ".5," + n(i % 3); });
  asks();
  write([&](int i) { return n(7 * i + 5) + "," + (i % 2 ? "M" : "B") + "," + n(i) + ".75"; });
  asks();
  // MNIST as a table: the pixels in the last column are 0.
  write([&](int i) { return n(i % 10) + "," + n(i) + ",0"; });
  found = Inspected(folder, {"t"});
  CheckHas(found.data, {"label_column: 0"});
  CheckHas(found.summary, {"0 to 9"});
  // -1, 0 and 1 are three classes; an index column that counts is left out.
  write([&](int i) { return n(i) + "," + n(i % 5) + ".5," + n(i % 3 - 1); });
  const auto three = InspectData(folder.path(), {"t"}, "-1");
  REQUIRE(three.ok());
  CheckHas(three->summary, {"Left out: '0' (it counts the lines)", "'-1' is 0, '0' is 1, '1' is 2",
                            "softmax_cross_entropy", "examples of each: 14, 13, 13"});
  CheckReads(folder, *three, 36, 4, {1, 1, 1});
  RequireError(InspectData(folder.path(), {"t"}, "7"), StatusCode::kInvalidArgument,
               {"--label '7': the table has no such column"});
  folder.Write("play", std::string("To be, or not to be\n"));
  RequireError(InspectData(folder.path(), {"play"}, "x"), StatusCode::kInvalidArgument,
               {"--label is for tables, but play is text"});
}

TEST_CASE("A file called .csv that is no table is an error with the line, not a text") {
  DataFolder folder;
  folder.Write("a.csv", std::string("a,b\n1,2\n3,4,5\n"));
  RequireError(
      InspectData(folder.path(), {"a.csv"}), StatusCode::kInvalidArgument,
      {"a.csv:3: the line has 3 values, but the first line has 2, with the separator ','"});
  folder.Write("b.CSV", std::string("a,b\n1,\"two\nlines\"\n"));
  RequireError(InspectData(folder.path(), {"b.CSV"}), StatusCode::kInvalidArgument,
               {"b.CSV:2: the quotes before 'two' do not end in this line"});
  folder.Write("c.csv", std::string("a;b\n1,5;2\n2,5;3\n"));
  RequireError(InspectData(folder.path(), {"c.csv"}, "b"), StatusCode::kInvalidArgument,
               {"c.csv: column a: '2,5' has a comma", "decimal=','"});
  folder.Write("d.csv", std::string("just words\nand more of them\n"));
  RequireError(InspectData(folder.path(), {"d.csv"}), StatusCode::kInvalidArgument, {"d.csv:"});
  folder.Write("e.csv", std::string("text,label\ngood film,pos\nbad film,neg\n"));
  RequireError(InspectData(folder.path(), {"e.csv"}), StatusCode::kInvalidArgument,
               {"e.csv: 2 columns of text and no column of numbers"});
}

TEST_CASE("What a table holds is printed so that a job reads it, whatever it is") {
  DataFolder folder;
  std::string text = "size,\"a \"\"b\"\" it's \\ \xc3\xa9\",class\n";
  for (int i = 0; i < 20; ++i) {
    text += std::to_string(i) + ".5," + (i % 2 ? "\"true\"" : "it's \\ \t#\xc3\xa9: [x]") + "," +
            (i % 3 ? "no" : "yes") + "\n";
  }
  folder.Write("it's.csv", text);
  const Inspection found = Inspected(folder, {"it's.csv"});
  CheckReads(folder, found, 18, 2, {1, 1, 3});
  folder.Write("latin.csv", "a,b\nM\xfcller,1\n");
  RequireError(InspectData(folder.path(), {"latin.csv"}), StatusCode::kInvalidArgument,
               {"latin.csv: a table must be text in UTF-8"});
}

TEST_CASE("Many columns are one line, and one normalisation where they are alike") {
  DataFolder folder;
  std::string pixels, others;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 64; ++k) {
      pixels += std::to_string((i + k) % 17) + ",";
      others += std::to_string(i * (k + 1)) + ".5,";
    }
    pixels += std::to_string(i % 3) + "\n";
    others += std::to_string(i % 3) + "\n";
  }
  folder.Write("pixels", pixels);
  folder.Write("others", others);
  Inspection found = InspectData(folder.path(), {"pixels"}, "-1").value();
  CheckHas(found.summary, {"Mean of all values: ", "Deviation: 4."});
  CHECK(found.summary.size() < 400);
  CHECK(found.data.size() < 200);
  CheckReads(folder, found, 36, 4, {1, 1, 64});
  found = Inspected(folder, {"others"});
  CHECK(found.summary.size() < 400);
  CheckReads(folder, found, 36, 4, {1, 1, 64});
}

TEST_CASE("Arrays are paired by their names and lengths") {
  const auto pairs = [](const std::vector<NamedArray>& arrays) { return PairArrays(arrays); };
  // Keras' mnist.npz, in the order of its archive.
  const auto mnist = pairs({{"x_test", {10000, 28, 28}},
                            {"x_train", {60000, 28, 28}},
                            {"y_train", {60000}},
                            {"y_test", {10000}}});
  REQUIRE(mnist.ok());
  CHECK(mnist->train.features == 1);
  CHECK(mnist->train.labels == 2);
  REQUIRE(mnist->test.has_value());
  CHECK(mnist->test->features == 0);
  CHECK(mnist->test->labels == 3);
  const auto pictures = pairs({{"train_images", {8, 2, 2}},
                               {"val_images", {4, 2, 2}},
                               {"train_labels", {8}},
                               {"val_labels", {4}}});
  REQUIRE(pictures.ok());
  CHECK(pictures->test->labels == 3);
  CHECK(pairs({{"Xtrain", {8, 2}}, {"Xtest", {8, 2}}, {"Ytest", {8}}, {"Ytrain", {8}}})
            ->train.labels == 3);
  CHECK(pairs({{"whatever", {8, 2}}, {"else", {8}}})->train.labels == 1);
  for (const std::vector<NamedArray>& bad : std::vector<std::vector<NamedArray>>{
           {{"x_train", {8, 2}}, {"y_train", {9}}},
           {{"x_test", {8, 2}}, {"x_train", {8, 2}}, {"y_train", {8}}},
           {{"a", {8, 2}}, {"b", {8, 2}}, {"c", {8}}},
           {{"x", {8, 2}}, {"first", {8}}, {"second", {8}}},
           {{"x_one", {8, 2}}, {"y_one", {8}}, {"x_two", {8, 2}}, {"y_two", {8}}},
           {{"labels", {8}}}}) {
    CAPTURE(bad[0].name);
    RequireError(pairs(bad), StatusCode::kInvalidArgument, {bad[0].name, "[8"});
  }
  DataFolder folder;
  for (const char* part : {"train", "test"}) {
    const int count = part[1] == 'r' ? 40 : 20;
    folder.Write(std::string("x_") + part + ".npy",
                 Npy("|u1", "(" + std::to_string(count) + ", 3)", FileBytes(count * 3, 51)));
    folder.Write(std::string("y_") + part + ".npy",
                 Npy("|u1", "(" + std::to_string(count) + ",)", FileBytes(count, 1)));
  }
  const Inspection found =
      Inspected(folder, {"x_test.npy", "x_train.npy", "y_test.npy", "y_train.npy"});
  CheckHas(found.data, {"train: {type: numpy, features: \"x_train.npy\", labels: \"y_train.npy\"}",
                        "test: {type: numpy, features: \"x_test.npy\", labels: \"y_test.npy\"}"});
  CHECK(found.data.find("holdout") == std::string::npos);
  CheckReads(folder, found, 40, 20, {1, 1, 3});
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
               {"table is a table and play is text"});
  RequireError(InspectData(folder.path(), {"noise"}), StatusCode::kInvalidArgument,
               {"noise: jobs cannot read this kind of file", "save it as UTF-8"});
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
