// Data in an object store: each kind of source has the same batches as from a folder.
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/status.h"
#include "common/storage/storage.h"
#include "tests/common/storage/memory_storage.h"
#include "tests/common/storage/test_store.h"
#include "tests/worker/data/pictures/picture_files.h"
#include "worker/data/data_folder.h"
#include "worker/data/sources/job_files.h"
#include "worker/data/sources/training_data.h"

namespace leeway::stored_data {
namespace {

using absl::StatusCode;

// Sets the folder of copies for the process, which looks it up once.
void UseCache() {
  static const TempFolder cache;
  setenv("LEEWAY_DATA_CACHE", cache.path().c_str(), 1);
}

// Puts a data folder into the store, and returns its location.
std::string Put(const DataFolder& folder) {
  UseCache();
  const std::string location = TestStore::Get().Folder("data");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(folder.path()).string();
    REQUIRE(CopyStored(entry.path().string(), absl::StrCat(location, "/", name)).ok());
  }
  return location;
}

v1::TrainingJob JobOf(const std::string& train, const std::string& rest = "") {
  return FromText("metadata { seed: 7 } workers { count: 2 } data { batch_size: 3 " + rest +
                  " train { " + train + " } }");
}

std::unique_ptr<TrainingData> Open(const v1::TrainingJob& job, const std::string& data_dir,
                                   uint32_t rank = 0) {
  auto data = TrainingData::Open(job, data_dir, rank);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  return *std::move(data);
}

void RequireSameBatches(const v1::TrainingJob& job, const std::string& here,
                        const std::string& stored) {
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const auto local = Open(job, here, rank), remote = Open(job, stored, rank);
    const uint64_t steps = local->steps_per_epoch();
    REQUIRE(steps > 0);
    REQUIRE(remote->steps_per_epoch() == steps);
    Batch expected, got;
    for (uint64_t step = 0; step < 2 * steps; ++step) {
      remote->WillLoad(step + 1, steps);
      REQUIRE(local->Load(step, steps, expected).ok());
      REQUIRE(remote->Load(step, steps, got).ok());
      REQUIRE(got.features == expected.features);
      REQUIRE(got.labels == expected.labels);
    }
  }
}

FileBytes Image(int value) {
  return Png(6, 5, Pixels(6, 5, 3, [value](auto y, auto x, auto) { return value + y + x; }).data(),
             PNG_FORMAT_RGB);
}

TEST_CASE("Data in a store give the batches of a folder: files") {
  const DataFolder folder;
  FileBytes pixels(20 * 4), labels;
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(3 * i);
  for (uint8_t i = 0; i < 20; ++i) labels.push_back(i % 3);
  folder.Write("mnist/images.gz", Gzip(IdxBytes({20, 2, 2}, pixels)));
  folder.Write("mnist/labels", IdxBytes({20}, labels));
  std::string table, sparse, text;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&table, i, ",", i * i, ",", i % 2, "\n");
    absl::StrAppend(&sparse, i % 2, " 1:", i, " 3:0.5\n");
    absl::StrAppend(&text, "line ", i * i, " of a text\n");
  }
  folder.Write("a.csv", table);
  folder.Write("b.csv", table + table);
  folder.Write("a.svm", sparse);
  folder.Write("a.txt", text);
  folder.Write("b.txt.gz", Gzip(FileBytes(text.begin(), text.end())));
  const std::string stored = Put(folder);
  for (const v1::TrainingJob& job :
       {JobOf("idx { images: 'mnist/images.gz' labels: 'mnist/labels' }"),
        JobOf("csv { files: 'a.csv' files: 'b.csv' label_column: -1 }"),
        JobOf("csv { files: 'a.csv' files: 'b.csv' label_column: -1 }", "partition { by_file {} }"),
        JobOf("libsvm { files: 'a.svm' features: 3 }"),
        JobOf("text { files: 'a.txt' files: 'b.txt.gz' context: 8 random_start: true }",
              "holdout: 0.2")}) {
    CAPTURE(job.ShortDebugString());
    RequireSameBatches(job, folder.path(), stored);
  }
}

TEST_CASE("Data in a store give the batches of a folder: pictures") {
  const DataFolder folder;
  for (int i = 0; i < 12; ++i) {
    folder.Write(absl::StrCat("train/", i % 2 ? "elm" : "oak", "/", i, ".png"), Image(10 * i));
  }
  const std::string stored = Put(folder);
  const std::string source = "image_folder { folder: 'train' height: 4 width: 4 }";
  RequireSameBatches(JobOf(source, "augment { flip: true crop_padding: 1 }"), folder.path(),
                     stored);
  // By absolute name, which is in the store or in a folder.
  const auto by_name = JobOf("image_folder { folder: '" + stored + "/train' height: 4 width: 4 }");
  const auto local = Open(JobOf(source), folder.path()), named = Open(by_name, folder.path());
  Batch expected, got;
  REQUIRE(local->Load(0, 2, expected).ok());
  REQUIRE(named->Load(0, 2, got).ok());
  CHECK(got.features == expected.features);
}

TEST_CASE("A picture that cannot be read is an error where damaged ones are replaced") {
  UseCache();
  const auto storage = std::make_shared<MemoryStorage>();
  MountStorage("s3://unreadable/", storage);
  const absl::Status refusal = GENERATE(absl::PermissionDeniedError("AccessDenied"),
                                        absl::ResourceExhaustedError("the disk is full"));
  const std::string folder =
      absl::StrCat("s3://unreadable/", absl::StatusCodeToString(refusal.code()));
  for (const char* name : {"elm/1.png", "elm/2.png", "oak/1.png", "oak/2.png"}) {
    const FileBytes image = Image(name[4]);
    REQUIRE(WriteStored(absl::StrCat(folder, "/", name), View(image)).ok());
  }
  storage->fault = [&](const std::string& operation, const std::string& location) {
    const bool refuses = operation == "open" && absl::EndsWith(location, "elm/2.png");
    return refuses ? refusal : absl::OkStatus();
  };
  const auto data = Open(JobOf("image_folder { folder: '" + folder +
                               "' height: 4 width: 4 damaged: DAMAGED_PICTURE_REPLACE }"),
                         "");
  size_t failed = 0;
  for (uint64_t step = 0; step < 2; ++step) {
    Batch batch;
    const absl::Status status = data->Load(step, 2, batch);
    CHECK(batch.replaced == 0);
    if (status.ok()) continue;
    ++failed;
    CHECK(Contains(status, std::string(refusal.message())));
  }
  CHECK(failed > 0);
}

TEST_CASE("What the store does not have, or may not give, is named by its location") {
  const DataFolder folder;
  folder.Write("a.csv", "1,2,0\n3,4,1\n");
  const std::string stored = Put(folder);
  RequireError(TrainingData::Open(JobOf("csv { files: 'none.csv' }"), stored, 0),
               StatusCode::kNotFound, {stored + "/none.csv", "data.train"});
  RequireError(
      TrainingData::Open(JobOf("image_folder { folder: 'none' height: 2 width: 2 }"), stored, 0),
      StatusCode::kNotFound, {stored + "/none", "no such folder"});
  RequireError(OpenDataFile("s3://none-such/x", "a.csv"), StatusCode::kNotFound,
               {"s3://none-such/x/a.csv: no such object, or no such bucket"});
  RequireError(OpenDataFile(stored, "../a.csv"), StatusCode::kInvalidArgument, {"'..'"});
  RequireError(OpenDataFile(stored, "a//b"), StatusCode::kInvalidArgument, {"a//b"});
  CHECK(KindOfData(stored, "a.csv").value() == DataKind::kFile);
  CHECK(KindOfData(stored, "none").value() == DataKind::kNothing);
  const std::string parent = stored.substr(0, stored.rfind('/'));
  CHECK(KindOfData(parent, stored.substr(parent.size() + 1)).value() == DataKind::kFolder);
}

TEST_CASE("A worker started by hand reads below its data folder only, in a store, too") {
  const auto refusal = [](const std::string& file,
                          const std::string& data_dir) -> absl::StatusOr<bool> {
    RETURN_IF_ERROR(CheckInDataFolder(JobOf("csv { files: '" + file + "' }"), data_dir));
    return true;
  };
  CHECK(refusal("a.csv", "s3://bucket/data").ok());
  CHECK(refusal("s3://bucket/data/a.csv", "s3://bucket/data").ok());
  for (const char* file : {"s3://bucket/database/a.csv", "s3://other/data/a.csv", "/etc/a.csv"}) {
    RequireError(refusal(file, "s3://bucket/data"), StatusCode::kInvalidArgument,
                 {file, "--absolute-paths"});
  }
  RequireError(refusal("s3://bucket/a.csv", "data"), StatusCode::kInvalidArgument, {"s3://bucket"});
}

}  // namespace
}  // namespace leeway::stored_data
