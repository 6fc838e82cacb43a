// Folders of pictures, as jobs read them.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "tests/log_capture.h"
#include "tests/worker/data/pictures/picture_files.h"
#include "worker/data/sources/test_data.h"
#include "worker/data/sources/training_data.h"

namespace leeway::picture_source {
namespace {

using absl::StatusCode;

v1::TrainingJob PictureJob(const std::string& rest = "") {
  return FromText(
      "metadata { seed: 7 } workers { count: 1 } data { batch_size: 4 train { "
      "image_folder { folder: 'train' height: 2 width: 2 } } " +
      rest + " }");
}

// A picture of 3 x 4 pixels that all have one value.
FileBytes Plain(int value) {
  return Png(3, 4, Pixels(3, 4, 3, [value](auto, auto, auto) { return value; }).data(),
             PNG_FORMAT_RGB);
}

// Class a has the values 0 to 2, class b the values 100 to 101.
void WriteTrain(const DataFolder& folder) {
  folder.Write("train/b/2.png", Plain(101));
  folder.Write("train/b/1.PNG", Plain(100));
  folder.Write("train/a/y.png", Plain(1));
  folder.Write("train/a/x.png", Plain(0));
  folder.Write("train/a/z.png", Plain(2));
  folder.Write("train/a/notes.txt", std::string("not a picture"));
  folder.Write("train/.cache/q.png", Plain(7));
  folder.Write("train/readme.md", std::string("nor this"));
}

std::unique_ptr<Dataset> TestOf(const v1::TrainingJob& job, const DataFolder& folder) {
  auto data = OpenTestData(job, folder.path());
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  return *std::move(data);
}

TEST_CASE("Classes and pictures are numbered in the order of their names") {
  DataFolder folder;
  WriteTrain(folder);
  const auto data =
      TestOf(PictureJob("test { image_folder { folder: 'train' height: 2 width: 2 } }"), folder);
  CHECK(data->size() == 5);
  CHECK(data->shape() == ImageShape{2, 2, 3});
  CHECK(data->classes() == 2);
  CHECK(data->decodes());
  Batch batch;
  REQUIRE(data->CopyBatch(0, 5, batch).ok());
  CHECK(batch.labels == std::vector<float>{0, 0, 0, 1, 1});
  const float values[] = {0, 1, 2, 100, 101};
  for (size_t i = 0; i < 5; ++i) {
    for (size_t k = 0; k < 12; ++k) CHECK(batch.features[12 * i + k] == Approx(values[i] / 255));
  }
}

TEST_CASE("Pictures are normalised and augmented as other images are") {
  DataFolder folder;
  WriteTrain(folder);
  const v1::TrainingJob job = PictureJob(
      "normalize { mean: 0.5 std: 0.5 } augment { crop_padding: 1 } partition { stratified {} }");
  const auto data = TrainingData::Open(job, folder.path(), 0);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  CHECK((*data)->worth_prefetching(false));
  std::set<float> seen;
  Batch batch, again;
  for (uint64_t step = 0; step < 20; ++step) {
    REQUIRE((*data)->Load(step, 2, batch).ok());
    REQUIRE((*data)->Load(step, 2, again).ok());
    CHECK(batch.features == again.features);
    seen.insert(batch.features.begin(), batch.features.end());
  }
  // A padded pixel is black.
  CHECK(seen.size() == 5);
  CHECK(*seen.begin() == Approx(-1));
  CHECK(*seen.rbegin() == Approx(2 * 101 / 255.0 - 1));
}

TEST_CASE("A held-out picture is never trained on, test classes are those of training") {
  DataFolder folder;
  WriteTrain(folder);
  const v1::TrainingJob held = PictureJob("holdout: 0.4");
  CHECK((*TrainingData::Open(held, folder.path(), 0))->examples() == 3);
  CHECK(TestOf(held, folder)->size() == 2);
  folder.Write("test/b/1.png", Plain(9));
  const v1::TrainingJob job =
      PictureJob("test { image_folder { folder: 'test' height: 2 width: 2 } }");
  const auto test = TestOf(job, folder);
  CHECK(test->labels()[0] == 1);
  CHECK(test->classes() == 2);
  folder.Write("test/c/1.png", Plain(9));
  RequireError(OpenTestData(job, folder.path()), StatusCode::kInvalidArgument,
               {"data.test.folder", "test/c", "no class of this name"});
}

TEST_CASE("A damaged picture is an error of the batch that names it, and no end of the others") {
  DataFolder folder;
  WriteTrain(folder);
  FileBytes cut = Plain(1);
  cut.resize(cut.size() - 20);
  folder.Write("train/a/y.png", cut);
  const auto data = *TrainingData::Open(PictureJob("augment { flip: true }"), folder.path(), 0);
  Batch batch;
  size_t failed = 0;
  for (uint64_t step = 0; step < 2; ++step) {
    const absl::Status status = data->Load(step, 2, batch);
    if (status.ok()) continue;
    ++failed;
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(Contains(status, "train/a/y.png: a damaged PNG"));
    CHECK(Contains(status, "fetch it again, or move it out of the folder"));
    CHECK(Contains(status, "damaged: replace"));
  }
  CHECK(failed == 1);
  std::filesystem::remove(folder.path() + "/train/a/y.png");
  CHECK_FALSE((data->Load(0, 2, batch).ok() && data->Load(1, 2, batch).ok()));
}

FileBytes CutOff(int value) {
  FileBytes cut = Plain(value);
  cut.resize(cut.size() - 20);
  return cut;
}

v1::TrainingJob ReplacingJob(const std::string& rest = "") {
  v1::TrainingJob job = PictureJob(rest);
  v1::ImageFolder& source = *job.mutable_data()->mutable_train()->mutable_image_folder();
  source.set_damaged(v1::DAMAGED_PICTURE_REPLACE);
  return job;
}

// For the batches of one pass, returns the pixels' values, 0 to 255, and the number of replaced
// pictures.
std::pair<std::multiset<int>, size_t> Values(const TrainingData& data) {
  std::multiset<int> values;
  size_t replaced = 0;
  for (uint64_t step = 0; step < 2; ++step) {
    Batch batch;
    REQUIRE(data.Load(step, 2, batch).ok());
    replaced += batch.replaced;
    for (size_t i = 0; i < batch.size; ++i) {
      values.insert(static_cast<int>(std::lround(batch.features[12 * i] * 255)));
      CHECK(batch.labels[i] == (batch.features[12 * i] > 0.2F ? 1 : 0));
    }
  }
  return {values, replaced};
}

TEST_CASE("Where damaged pictures are replaced, the next one of the class stands for each") {
  const testing::LogCapture log;
  DataFolder folder;
  WriteTrain(folder);
  folder.Write("train/a/y.png", CutOff(1));
  folder.Write("train/b/2.png", std::string("no picture at all"));
  const auto data = *TrainingData::Open(ReplacingJob(), folder.path(), 0);
  const std::pair<std::multiset<int>, size_t> expected = {{0, 2, 2, 100, 100}, 2};
  CHECK(Values(*data) == expected);
  CHECK(Values(*data) == expected);
  CHECK_THAT(log.text(), Catch::Contains("train/a/y.png: a damaged PNG"));
  CHECK(std::ranges::count(log.text(), '\n') == 2);
  // A missing file is not damage but an error.
  std::filesystem::remove(folder.path() + "/train/a/y.png");
  Batch batch;
  CHECK_FALSE((data->Load(0, 2, batch).ok() && data->Load(1, 2, batch).ok()));
}

TEST_CASE("A class without a whole picture is an error that names one") {
  const testing::LogCapture log;
  DataFolder folder;
  WriteTrain(folder);
  folder.Write("train/b/1.PNG", CutOff(1));
  folder.Write("train/b/2.png", CutOff(1));
  const auto data = *TrainingData::Open(ReplacingJob(), folder.path(), 0);
  Batch batch;
  absl::Status status = data->Load(0, 2, batch);
  if (status.ok()) status = data->Load(1, 2, batch);
  CHECK(status.code() == StatusCode::kInvalidArgument);
  CHECK(Contains(status, "every picture of the class is damaged"));
  CHECK(Contains(status, "train/b/"));
}

TEST_CASE("Folders without classes or pictures, and classes that do not fit, are errors") {
  DataFolder folder;
  const auto refused = [&](StatusCode code, const std::vector<std::string>& parts,
                           const std::string& rest = "") {
    RequireError(TrainingData::Open(PictureJob(rest), folder.path(), 0), code, parts);
  };
  refused(StatusCode::kNotFound, {"data.train.folder", "train: no such folder"});
  folder.Write("train/1.png", Plain(1));
  refused(StatusCode::kInvalidArgument, {"data.train.folder", "one for each class"});
  folder.Write("train/a/notes.txt", std::string("x"));
  refused(StatusCode::kInvalidArgument, {"train/a: has no picture"});
  folder.Write("train/a/1.png", Plain(1));
  folder.Write("train/a/more/1.png", Plain(1));
  refused(StatusCode::kInvalidArgument, {"train/a: contains the folder more"});
  DataFolder three;
  for (const char* name : {"a", "b", "c"})
    three.Write(std::string("train/") + name + "/1.png", Plain(1));
  v1::TrainingJob job = PictureJob();
  job.mutable_model()->add_layers()->mutable_dense()->set_units(2);
  RequireError(TrainingData::Open(job, three.path(), 0), StatusCode::kInvalidArgument,
               {"data.train.folder", "train/c: label 2", "units is 2"});
}

}  // namespace
}  // namespace leeway::picture_source
