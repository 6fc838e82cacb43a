// Text sources, as jobs read them.
#include <algorithm>
#include <numeric>
#include <set>

#include "tests/worker/data/data_test_util.h"
#include "worker/data/dataset.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/sources/training_data.h"
#include "worker/data/text/utf8.h"

namespace leeway::text_source {
namespace {

using absl::StatusCode;
using Floats = std::vector<float>;

v1::TrainingJob Job(const std::string& text, const std::string& rest = "") {
  return FromText("metadata { seed: 7 } workers { count: 1 } data { batch_size: 4 train { text { " +
                  text + " } } " + rest + " }");
}

std::string Letters(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text.push_back(static_cast<char>('a' + i % 26));
  return text;
}

Floats Iota(size_t first, size_t count) {
  Floats values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(first));
  return values;
}

std::unique_ptr<Dataset> OpenTest(const v1::TrainingJob& job, const DataFolder& folder) {
  auto data = OpenTestData(job, folder.path());
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  return *std::move(data);
}

std::unique_ptr<TrainingData> OpenTrain(const v1::TrainingJob& job, const DataFolder& folder,
                                        uint32_t rank = 0) {
  auto data = TrainingData::Open(job, folder.path(), rank);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  return *std::move(data);
}

// Returns the tokens of a file, by a test source with windows of one token.
Floats TokensOf(const DataFolder& folder, const std::string& options) {
  const auto data = OpenTest(
      Job("context: 1 files: 'f' " + options, "test { text { context: 1 files: 'f' } }"), folder);
  Batch batch;
  REQUIRE(data->CopyBatch(0, data->size(), batch).ok());
  Floats tokens = batch.features;
  tokens.push_back(batch.labels.back());
  return tokens;
}

TEST_CASE("A text to test on has (n - 1) / context windows, one after the other") {
  DataFolder folder;
  for (size_t count : {4, 6, 7, 8, 100}) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text.push_back(static_cast<char>(i));
    folder.Write("f", text);
    const auto data = OpenTest(Job("context: 3 unit: TEXT_UNIT_BYTES files: 'f'",
                                   "test { text { context: 3 files: 'f' } }"),
                               folder);
    REQUIRE(data->size() == (count - 1) / 3);
    CHECK(data->shape() == ImageShape{3, 1, 1});
    CHECK(data->labels_each() == 3);
    CHECK(data->labels().empty());
    CHECK(data->classes() == 256);
    CHECK(data->bytes() == 0);
    Batch batch;
    REQUIRE(data->CopyBatch(0, data->size(), batch).ok());
    CHECK(batch.size == data->size());
    CHECK(batch.features == Iota(0, 3 * data->size()));
    CHECK(batch.labels == Iota(1, 3 * data->size()));
  }
}

TEST_CASE("In training a window begins at a drawn place of its stretch, each of them some time") {
  DataFolder folder;
  folder.Write("f", Letters(26));
  const auto data = OpenTrain(Job("context: 4 files: 'f'"), folder);
  // The last window may begin at 5 x 4 + 3 - 4, because the token after its last one is there.
  REQUIRE(data->examples() == 26 / 4 - 1);
  std::set<float> begins;
  Batch batch, again;
  for (uint64_t step = 0; step < 200; ++step) {
    REQUIRE(data->Load(step, 2, batch).ok());
    REQUIRE(batch.features.size() == 4 * batch.size);
    REQUIRE(batch.labels.size() == 4 * batch.size);
    for (size_t i = 0; i < batch.size; ++i) {
      const auto begin = static_cast<size_t>(batch.features[4 * i]);
      begins.insert(batch.features[4 * i]);
      REQUIRE(Floats(&batch.features[4 * i], &batch.features[4 * i] + 4) == Iota(begin, 4));
      REQUIRE(Floats(&batch.labels[4 * i], &batch.labels[4 * i] + 4) == Iota(begin + 1, 4));
    }
    REQUIRE(OpenTrain(Job("context: 4 files: 'f'"), folder)->Load(step, 2, again).ok());
    REQUIRE(batch.features == again.features);
  }
  CHECK(begins.size() == 20);
  CHECK(*begins.begin() == 0);
  CHECK(*begins.rbegin() == 19);
}

TEST_CASE("Without a drawn start, windows for training are those of a test") {
  DataFolder folder;
  folder.Write("f", Letters(25));
  const auto data = OpenTrain(Job("context: 4 files: 'f' random_start: false"), folder);
  REQUIRE(data->examples() == 6);
  std::set<float> begins;
  Batch batch;
  for (uint64_t step = 0; step < 2; ++step) {
    REQUIRE(data->Load(step, 2, batch).ok());
    for (size_t i = 0; i < batch.size; ++i) begins.insert(batch.features[4 * i]);
  }
  CHECK(begins == std::set<float>{0, 4, 8, 12, 16, 20});
}

TEST_CASE("No window spans two files, and by_file gives a worker its own") {
  DataFolder folder;
  folder.Write("a", std::string(20, 'a'));
  folder.Write("b", std::string(24, 'b'));
  v1::TrainingJob job = Job("context: 4 files: 'a' files: 'b'");
  const auto all = OpenTrain(job, folder);
  CHECK(all->examples() == 4 + 5);
  CHECK(all->classes() == 2);
  Batch batch;
  for (uint64_t step = 0; step < 30; ++step) {
    REQUIRE(all->Load(step, 3, batch).ok());
    for (size_t i = 0; i < batch.size; ++i) {
      CHECK(Floats(&batch.labels[4 * i], &batch.labels[4 * i] + 4) ==
            Floats(4, batch.features[4 * i]));
    }
  }
  job.mutable_workers()->set_count(2);
  job.mutable_data()->mutable_partition()->mutable_by_file();
  for (uint32_t rank : {0, 1}) {
    const auto own = OpenTrain(job, folder, rank);
    CHECK(own->examples() == 4 + rank);
    // The vocabulary covers all files, so that all workers have the same numbers.
    CHECK(own->classes() == 2);
    REQUIRE(own->Load(0, 2, batch).ok());
    CHECK(batch.features == Floats(16, static_cast<float>(rank)));
  }
}

TEST_CASE("The held-out part of a text is its end, and training does not reach it") {
  DataFolder folder;
  folder.Write("f", Letters(20) + std::string(20, 'z'));
  const v1::TrainingJob job = Job("context: 4 files: 'f'", "holdout: 0.5");
  const auto train = OpenTrain(job, folder);
  const auto test = OpenTest(job, folder);
  CHECK(train->examples() == 4);
  CHECK(test->size() == 4);
  CHECK(train->classes() == 21);
  Batch batch;
  REQUIRE(test->CopyBatch(0, 4, batch).ok());
  CHECK(batch.features == Floats(16, 20));
  for (uint64_t step = 0; step < 50; ++step) {
    REQUIRE(train->Load(step, 1, batch).ok());
    for (float label : batch.labels) CHECK(label < 20);
  }
  RequireError(OpenTestData(Job("context: 4 files: 'f'", "holdout: 0.01"), folder.path()),
               StatusCode::kInvalidArgument, {"data.holdout", "0 tokens to test on"});
  RequireError(TrainingData::Open(Job("context: 4 files: 'f'", "holdout: 0.9"), folder.path(), 0),
               StatusCode::kInvalidArgument, {"data.train", "4 tokens to train on", "8"});
}

TEST_CASE("Characters are numbered by code point, ASCII or not, packed or not") {
  DataFolder folder;
  folder.Write("f", std::string("cab\na"));
  CHECK(TokensOf(folder, "") == Floats{3, 1, 2, 0, 1});
  const std::string umlauts =
      "z\xc3\xa4"
      "a\xe2\x82\xac\xf0\x9f\x98\x80"
      "a";
  folder.Write("f", umlauts);
  CHECK(TokensOf(folder, "") == Floats{1, 2, 0, 3, 4, 0});
  folder.Write("f", Gzip(FileBytes(umlauts.begin(), umlauts.end())));
  CHECK(TokensOf(folder, "") == Floats{1, 2, 0, 3, 4, 0});
  folder.Write("v", "abc\xc3\xa4z\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(TokensOf(folder, "vocabulary: 'v'") == Floats{3, 4, 0, 5, 6, 0});
}

TEST_CASE("A vocabulary may be larger than two bytes can number") {
  DataFolder folder;
  std::string all;
  size_t count = 0;
  for (uint32_t code = 0; code < 0x11000; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    all += Utf8(code);
    ++count;
  }
  folder.Write("f", all);
  REQUIRE(count > 0x10000);
  CHECK(TokensOf(folder, "") == Iota(0, count));
}

TEST_CASE("Unpacked text counts as memory, mapped text does not, numbers count") {
  DataFolder folder;
  const std::string letters = Letters(100);
  folder.Write("f", letters);
  CHECK(OpenTrain(Job("context: 4 files: 'f'"), folder)->dataset().bytes() == 0);
  folder.Write("f", Gzip(FileBytes(letters.begin(), letters.end())));
  CHECK(OpenTrain(Job("context: 4 files: 'f'"), folder)->dataset().bytes() == 100);
  folder.Write("f", letters + "\xc3\xa4");
  CHECK(OpenTrain(Job("context: 4 files: 'f'"), folder)->dataset().bytes() == 202);
}

TEST_CASE("A character that the vocabulary lacks, and bytes that are none, have a place") {
  DataFolder folder;
  folder.Write("train", Letters(30));
  folder.Write("test", "abc\nde!\n");
  const std::string files = "context: 2 files: 'train'";
  const std::string test = "test { text { context: 2 files: 'test' } }";
  const std::string remedy = "set `vocabulary` to a text that has all characters";
  const auto refused = [&](const std::string& options, const std::vector<std::string>& parts) {
    RequireError(OpenTestData(Job(files + options, test), folder.path()),
                 StatusCode::kInvalidArgument, parts);
  };
  refused("", {"data.test.files.0", "test:1:4: the character U+000A", remedy});
  folder.Write("test",
               "abc\xc3\xa4"
               "de");
  refused("", {"test:1:4: the character '\xc3\xa4' (U+00E4)", remedy});
  folder.Write("all", "abc\nde!" + Letters(26));
  refused(" vocabulary: 'all'", {"test:1:4", "the vocabulary all: add it there"});
  folder.Write("test", "a\nb\xffx");
  refused(" vocabulary: 'all'", {"data.test.files.0", "test:2:2: byte 3 (0xff) is not UTF-8"});
  folder.Write("train", "ab\xc3");
  refused("", {"data.train.files.0", "train:1:3: byte 2 (0xc3) is not UTF-8", "unit: bytes"});
  folder.Write("all", "\xc3");
  refused(" vocabulary: 'all'", {"data.train.vocabulary", "all:1:1"});
}

TEST_CASE("A text that is too short, empty or absent is an error with its key") {
  DataFolder folder;
  folder.Write("f", Letters(7));
  RequireError(TrainingData::Open(Job("context: 4 files: 'f'"), folder.path(), 0),
               StatusCode::kInvalidArgument,
               {"data.train", "f: has 7 tokens to train on", "context 4 needs 8"});
  RequireError(OpenTestData(Job("context: 7 files: 'f'", "test { text { context: 7 files: 'f' } }"),
                            folder.path()),
               StatusCode::kInvalidArgument, {"data.test", "7 tokens to test on", "needs 8"});
  folder.Write("f", "");
  RequireError(TrainingData::Open(Job("context: 4 files: 'f'"), folder.path(), 0),
               StatusCode::kInvalidArgument, {"data.train.files.0", "the file is empty"});
  RequireError(TrainingData::Open(Job("context: 4 files: 'g'"), folder.path(), 0),
               StatusCode::kNotFound, {"data.train.files.0", "g: no such file"});
  const FileBytes packed = Gzip(FileBytes(1000, 'a'));
  folder.Write("f", FileBytes(packed.begin(), packed.end() - 3));
  RequireError(TrainingData::Open(Job("context: 4 files: 'f'"), folder.path(), 0),
               StatusCode::kDataLoss, {"data.train.files.0", "is truncated"});
}

TEST_CASE("A model that does not know all tokens is refused at its key") {
  DataFolder folder;
  folder.Write("f", Letters(40));
  v1::TrainingJob job = Job("context: 4 files: 'f'");
  auto* const first = job.mutable_model()->add_layers()->mutable_sequence();
  first->add_layers()->mutable_embedding()->set_vocabulary(25);
  RequireError(
      TrainingData::Open(job, folder.path(), 0), StatusCode::kInvalidArgument,
      {"model.layers.0.sequence.layers.0.embedding.vocabulary", "26 tokens", "set it to 26"});
  first->mutable_layers(0)->mutable_embedding()->set_vocabulary(26);
  job.mutable_model()->add_layers()->mutable_dense()->set_units(20);
  RequireError(TrainingData::Open(job, folder.path(), 0), StatusCode::kInvalidArgument,
               {"model.layers.1.dense.units", "20 is too small"});
  job.mutable_model()->mutable_layers(1)->mutable_dense()->set_units(30);
  CHECK(OpenTrain(job, folder)->classes() == 26);
}

TEST_CASE("Partitions by class are refused for text") {
  DataFolder folder;
  folder.Write("f", Letters(40));
  for (const char* partition : {"stratified {}", "label_skew { alpha: 1 }"}) {
    RequireError(TrainingData::Open(
                     Job("context: 4 files: 'f'", std::string("partition { ") + partition + " }"),
                     folder.path(), 0),
                 StatusCode::kInvalidArgument, {"data.partition", "iid or by_file"});
  }
}

TEST_CASE("Tiny Shakespeare has 1115394 characters, 65 different ones") {
  const auto folder = SharedData();
  const auto data = TrainingData::Open(
      Job("context: 64 files: 'tinyshakespeare/input.txt'", "holdout: 0.1"), folder, 0);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  CHECK((*data)->classes() == 65);
  CHECK((*data)->examples() == (1115394 - 111539) / 64 - 1);
}

}  // namespace
}  // namespace leeway::text_source
