#include "worker/data/sources/training_data.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/worker/data/data_test_util.h"
#include "worker/data/sources/test_data.h"

namespace leeway::training_data {
namespace {

using absl::StatusCode;

// Each example's only feature is its number, so that a batch tells which examples it holds.
std::string NumberedCsv(int first, int count, int classes) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    text += std::to_string(i) + "," + std::to_string(i % classes) + "\n";
  }
  return text;
}

v1::TrainingJob Job(uint32_t workers, uint32_t batch_size, const std::string& partition = "iid {}",
                    const std::vector<std::string>& files = {"a.csv"}) {
  v1::TrainingJob job = FromText("metadata { seed: 42 } data { train { csv {} } }");
  for (const std::string& file : files)
    job.mutable_data()->mutable_train()->mutable_csv()->add_files(file);
  job.mutable_data()->set_batch_size(batch_size);
  job.mutable_workers()->set_count(workers);
  *job.mutable_data()->mutable_partition() = FromText<v1::Partition>(partition);
  return job;
}

std::unique_ptr<TrainingData> Open(const v1::TrainingJob& job, const DataFolder& folder,
                                   uint32_t rank) {
  absl::StatusOr<std::unique_ptr<TrainingData>> data = TrainingData::Open(job, folder.path(), rank);
  INFO(data.status().ToString());
  REQUIRE(data.ok());
  return std::move(*data);
}

// The training data of all ranks of a job.
struct Ranks {
  Ranks(const v1::TrainingJob& job, const DataFolder& folder) {
    for (uint32_t r = 0; r < job.workers().count(); ++r) {
      all.push_back(Open(job, folder, r));
      steps = std::max(steps, all.back()->steps_per_epoch());
    }
  }
  // Returns the examples of all ranks at a step, in rank order.
  std::vector<int> Step(uint64_t step) const {
    std::vector<int> examples;
    Batch batch;
    for (const auto& data : all) {
      REQUIRE(data->Load(step, steps, batch).ok());
      examples.insert(examples.end(), batch.features.begin(), batch.features.end());
    }
    return examples;
  }
  std::vector<int> Epoch(uint64_t epoch) const {
    std::vector<int> examples;
    for (uint64_t p = 0; p < steps; ++p) {
      const std::vector<int> step = Step(epoch * steps + p);
      examples.insert(examples.end(), step.begin(), step.end());
    }
    return examples;
  }

  std::vector<std::unique_ptr<TrainingData>> all;
  uint64_t steps = 0;
};

std::vector<int> Sorted(std::vector<int> v) {
  std::sort(v.begin(), v.end());
  return v;
}

std::vector<int> UpTo(int count) {
  std::vector<int> v(count);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

TEST_CASE("With every partition an epoch goes once through all examples, whatever the numbers") {
  DataFolder folder;
  for (int count : {1, 9, 100, 257}) {
    folder.Write("a.csv", NumberedCsv(0, count, 3));
    for (const char* partition : {"iid {}", "", "stratified {}", "label_skew { alpha: 0.3 }"}) {
      for (uint32_t workers : {1, 3, 8}) {
        for (uint32_t batch_size : {1, 4, 1000}) {
          const Ranks ranks(Job(workers, batch_size, partition), folder);
          const std::vector<int> first = ranks.Epoch(0);
          REQUIRE(Sorted(first) == UpTo(count));
          REQUIRE(Sorted(ranks.Epoch(5)) == UpTo(count));
          if (count >= 100) CHECK(ranks.Epoch(5) != first);
        }
      }
    }
  }
}

TEST_CASE(
    "Four workers of batch 32 see at every step what one of batch 128 sees, in the same order") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 1000, 10));
  const Ranks four(Job(4, 32), folder), one(Job(1, 128), folder);
  REQUIRE(four.steps == 8);
  REQUIRE(one.steps == 8);
  for (uint64_t step = 0; step < 24; ++step) CHECK(four.Step(step) == one.Step(step));
}

TEST_CASE("At the tail of an epoch batches are smaller, then empty") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 21, 3));
  const Ranks ranks(Job(3, 4), folder);  // 3 x 4, then 4, 4, 1
  CHECK(ranks.steps == 2);
  folder.Write("b.csv", NumberedCsv(0, 17, 3));
  const Ranks short_tail(Job(3, 4, "iid {}", {"b.csv"}), folder);  // 3 x 4, then 4, 1, nothing
  CHECK(short_tail.all[0]->steps_per_epoch() == 2);
  CHECK(short_tail.all[2]->steps_per_epoch() == 1);
  Batch batch;
  const std::vector<size_t> sizes[] = {{4, 4}, {4, 1}, {4, 0}};
  for (uint32_t r = 0; r < 3; ++r) {
    for (uint64_t step = 0; step < 4; ++step) {
      REQUIRE(short_tail.all[r]->Load(step, 2, batch).ok());
      CHECK(batch.size == sizes[r][step % 2]);
      CHECK(batch.features.size() == batch.size);
      CHECK(batch.labels.size() == batch.size);
    }
  }
}

TEST_CASE("A batch is a function of seed, step and rank, not of what was loaded before") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 100, 3));
  for (const char* partition : {"iid {}", "stratified {}", "label_skew { alpha: 0.3 }"}) {
    const Ranks a(Job(3, 4, partition), folder), b(Job(3, 4, partition), folder);
    std::vector<std::vector<int>> forward;
    for (uint64_t step = 0; step < 4 * a.steps; ++step) forward.push_back(a.Step(step));
    for (uint64_t step = 4 * a.steps; step-- > 0;) REQUIRE(b.Step(step) == forward[step]);
    v1::TrainingJob other = Job(3, 4, partition);
    other.mutable_metadata()->set_seed(43);
    CHECK(Ranks(other, folder).Step(0) != forward[0]);
  }
}

TEST_CASE("Leased batches: the same on every rank, and an epoch of them has every example once") {
  const DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 23, 2));
  const v1::TrainingJob job = Job(3, 4);
  const auto one = Open(job, folder, 0);
  const auto other = Open(job, folder, 2);
  REQUIRE(one->batches_per_epoch() == 6);
  Batch batch;
  Batch same;
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::vector<int> examples;
    for (uint64_t i = 0; i < 6; ++i) {
      REQUIRE(one->LoadBatch(6 * epoch + i, batch).ok());
      REQUIRE(other->LoadBatch(6 * epoch + i, same).ok());
      CHECK(batch.features == same.features);
      examples.insert(examples.end(), batch.features.begin(), batch.features.end());
    }
    CHECK_FALSE(std::is_sorted(examples.begin(), examples.end()));
    std::sort(examples.begin(), examples.end());
    std::vector<int> all(23);
    std::iota(all.begin(), all.end(), 0);
    CHECK(examples == all);
  }
  REQUIRE(one->LoadNothing(batch).ok());
  CHECK(batch.size == 0);
}

TEST_CASE("Many threads may load at once") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 100, 3));
  const Ranks ranks(Job(1, 7), folder);
  std::vector<std::vector<int>> expected;
  for (uint64_t step = 0; step < 60; ++step) expected.push_back(ranks.Step(step));
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 600; ++i) {
        const uint64_t step = (i * (2 * t + 1)) % 60;
        wrong[t] += ranks.Step(step) != expected[step];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("With by_file a rank reads only its own files, the others may be absent") {
  DataFolder folder;
  folder.Write("0.csv", NumberedCsv(0, 10, 3));
  folder.Write("2.csv", NumberedCsv(20, 5, 3));
  const v1::TrainingJob job = Job(2, 4, "by_file {}", {"0.csv", "1.csv", "2.csv"});
  const auto data = Open(job, folder, 0);
  CHECK(data->examples() == 15);
  CHECK(data->steps_per_epoch() == 4);
  std::vector<int> seen;
  Batch batch;
  for (uint64_t p = 0; p < 4; ++p) {
    REQUIRE(data->Load(p, 4, batch).ok());
    seen.insert(seen.end(), batch.features.begin(), batch.features.end());
  }
  std::vector<int> expected = UpTo(10);
  for (int i = 20; i < 25; ++i) expected.push_back(i);
  CHECK(Sorted(seen) == expected);
  RequireError(TrainingData::Open(job, folder.path(), 1), StatusCode::kNotFound, {"1.csv"});
}

TEST_CASE(
    "Tables with other columns than those trained on are refused, on every rank and in tests") {
  DataFolder folder;
  folder.Write("a.csv", "x,y,c\n1,2,0\n3,4,1\n");
  folder.Write("b.csv", "y,x,c\n2,1,0\n4,3,1\n");
  v1::TrainingJob job = Job(2, 1, "by_file {}", {"a.csv", "b.csv"});
  job.mutable_data()->mutable_train()->mutable_csv()->set_label("c");
  const auto first = Open(job, folder, 0);
  RequireError(TrainingData::StepsOfRanks(job, folder.path(), *first), StatusCode::kInvalidArgument,
               {"data.train: the data of rank 1: its feature 0 is 'y', but the training data has "
                "'x'"});
  *job.mutable_data()->mutable_partition() = FromText<v1::Partition>("iid {}");
  RequireError(TrainingData::Open(job, folder.path(), 0), StatusCode::kInvalidArgument,
               {"data.train.files.1: b.csv: its feature 0 is 'y'"});
  v1::Csv& test = *job.mutable_data()->mutable_test()->mutable_csv();
  test.add_files("b.csv");
  test.set_label("c");
  RequireError(OpenTestDataOf(job, folder.path(), first->dataset()), StatusCode::kInvalidArgument,
               {"data.test: its feature 0 is 'y'"});
  test.set_files(0, "a.csv");
  CHECK(OpenTestDataOf(job, folder.path(), first->dataset()).ok());
}

TEST_CASE("A held-out example is never trained on, and OpenTestData gives just those") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 60, 3));
  folder.Write("b.csv", NumberedCsv(60, 40, 3));
  for (const char* partition :
       {"iid {}", "stratified {}", "by_file {}", "label_skew { alpha: 0.5 }"}) {
    v1::TrainingJob job = Job(2, 8, partition, {"a.csv", "b.csv"});
    job.mutable_data()->set_holdout(0.25);
    const auto test = *OpenTestData(job, folder.path());
    REQUIRE(test != nullptr);
    CHECK(test->size() == 25);
    CHECK(test->classes() == 3);
    Batch batch;
    REQUIRE(test->CopyBatch(0, test->size(), batch).ok());
    std::vector<int> all(batch.features.begin(), batch.features.end());
    CHECK(std::count_if(all.begin(), all.end(), [](int i) { return i < 60; }) == 15);
    for (size_t i = 0; i < all.size(); ++i) CHECK(batch.labels[i] == all[i] % 3);
    const std::vector<int> trained = Ranks(job, folder).Epoch(3);
    all.insert(all.end(), trained.begin(), trained.end());
    CHECK(Sorted(all) == UpTo(100));
  }
}

TEST_CASE("Files of the same size hold out different examples") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 40, 3));
  folder.Write("b.csv", NumberedCsv(100, 40, 3));
  v1::TrainingJob job = Job(1, 8, "iid {}", {"a.csv", "b.csv"});
  job.mutable_data()->set_holdout(0.25);
  const auto test = *OpenTestData(job, folder.path());
  REQUIRE(test->size() == 20);
  Batch a, b;
  REQUIRE(test->CopyBatch(0, 10, a).ok());
  REQUIRE(test->CopyBatch(10, 10, b).ok());
  for (float& x : b.features) x -= 100;
  CHECK(a.features != b.features);
}

TEST_CASE("With a test source nothing is held out, with neither there is no test data") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 10, 3));
  folder.Write("t.csv", NumberedCsv(0, 4, 2));
  v1::TrainingJob job = Job(1, 4);
  CHECK(*OpenTestData(job, folder.path()) == nullptr);
  job.mutable_data()->mutable_test()->mutable_csv()->add_files("t.csv");
  job.mutable_data()->set_holdout(0.5);
  CHECK((*OpenTestData(job, folder.path()))->size() == 4);
  CHECK((*OpenTestData(job, folder.path()))->classes() == 2);
  CHECK(Open(job, folder, 0)->examples() == 10);
  v1::TrainingJob none = Job(1, 4);
  none.mutable_data()->set_holdout(0.001);
  RequireError(OpenTestData(none, folder.path()), StatusCode::kInvalidArgument, {"data.holdout"});
}

TEST_CASE("Augmentation is of training batches only, drawn by step and rank") {
  DataFolder folder;
  folder.Write("i", IdxBytes({4, 3, 3}, FileBytes(36, 51)));
  folder.Write("l", IdxBytes({4}, {0, 1, 0, 1}));
  v1::TrainingJob job = FromText(R"(
      data { train { idx { images: "i" labels: "l" } } test { idx { images: "i" labels: "l" } }
             batch_size: 2 augment { flip: true crop_padding: 2 } normalize { mean: 0.2 std: 0.1 } }
      workers { count: 2 })");
  Batch a, b, other_step;
  const auto data = Open(job, folder, 0);
  REQUIRE(data->Load(0, 1, a).ok());
  REQUIRE(Open(job, folder, 0)->Load(0, 1, b).ok());
  REQUIRE(data->Load(1, 1, other_step).ok());
  CHECK(a.features == b.features);
  CHECK(a.features != other_step.features);
  // A padded pixel is black: (0 - 0.2) / 0.1.
  for (float x : a.features) CHECK((std::abs(x) < 1e-6 || std::abs(x + 2) < 1e-6));
  const auto test = *OpenTestData(job, folder.path());
  REQUIRE(test->CopyBatch(0, 4, a).ok());
  for (float x : a.features) CHECK(std::abs(x) < 1e-6);
}

TEST_CASE("Examples are mixed in training batches only, by step and rank") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 60, 3));
  v1::TrainingJob plain = Job(2, 8), job = plain;
  plain.mutable_data()->set_holdout(0.2);
  job.mutable_data()->set_holdout(0.2);
  job.mutable_data()->mutable_augment()->set_mixup(1);
  const auto data = Open(job, folder, 0), other_rank = Open(job, folder, 1);
  Batch batch, again, unmixed, others;
  for (uint64_t step = 0; step < 6; ++step) {
    REQUIRE(data->Load(step, 3, batch).ok());
    REQUIRE(Open(job, folder, 0)->Load(step, 3, again).ok());
    REQUIRE(Open(plain, folder, 0)->Load(step, 3, unmixed).ok());
    REQUIRE(other_rank->Load(step, 3, others).ok());
    CHECK(batch.features == again.features);
    CHECK(batch.other_labels == again.other_labels);
    CHECK(batch.share == again.share);
    CHECK(batch.share != others.share);
    // The mixed examples are made of the same examples.
    CHECK(batch.labels == unmixed.labels);
    CHECK(batch.features != unmixed.features);
    CHECK(unmixed.other_labels.empty());
  }
  REQUIRE(data->LoadBatch(4, batch).ok());
  REQUIRE(other_rank->LoadBatch(4, others).ok());
  CHECK(batch.features == others.features);
  // A batch that is read again without mixing keeps nothing of the mixing.
  REQUIRE((*OpenTestData(job, folder.path()))->CopyBatch(0, 12, batch).ok());
  CHECK(batch.other_labels.empty());
  CHECK(batch.share == 1);
  REQUIRE(data->Load(0, 3, batch).ok());
  REQUIRE(data->LoadNothing(batch).ok());
  CHECK(batch.other_labels.empty());
}

TEST_CASE("Jobs that cannot be served are errors that say why") {
  DataFolder folder;
  folder.Write("a.csv", NumberedCsv(0, 10, 3));
  folder.Write("wide.csv", "1,2,3,0\n");
  const auto open = [&](const v1::TrainingJob& job, uint32_t rank = 0) {
    return TrainingData::Open(job, folder.path(), rank);
  };
  RequireError(open(Job(2, 4), 2), StatusCode::kInvalidArgument,
               {"rank 2 does not exist", "2 workers"});
  RequireError(open(Job(2, 0)), StatusCode::kInvalidArgument, {"data.batch_size"});
  RequireError(open(Job(3, 4, "by_file {}"), 1), StatusCode::kInvalidArgument,
               {"by_file", "rank 1", "1 file for 3 workers"});
  v1::TrainingJob squared = Job(2, 4, "stratified {}");
  squared.mutable_model()->set_loss(v1::LOSS_SQUARED);
  RequireError(open(squared), StatusCode::kInvalidArgument, {"data.partition", "loss of this job"});
  RequireError(open(Job(1, 4, "", {"a.csv", "wide.csv"})), StatusCode::kInvalidArgument,
               {"wide.csv", "3 features", "1 features"});
  RequireError(open(FromText("data { batch_size: 1 }")), StatusCode::kInvalidArgument,
               {"no examples"});
}

TEST_CASE("Classes are what the files hold, and what the loss says") {
  DataFolder folder;
  folder.Write("a.csv", "1,0\n1,1\n");
  v1::TrainingJob job = Job(1, 4);
  CHECK(Open(job, folder, 0)->classes() == 2);
  job.mutable_model()->set_loss(v1::LOSS_LOGISTIC);
  CHECK(Open(job, folder, 0)->classes() == 2);
  job.mutable_model()->set_loss(v1::LOSS_SQUARED);
  CHECK(Open(job, folder, 0)->classes() == 0);
}

}  // namespace
}  // namespace leeway::training_data
