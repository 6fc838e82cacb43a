// What an observer is told about a batch, and that observing changes nothing.
#include <algorithm>
#include <cstring>
#include <functional>

#include "tests/worker/model/support.h"
#include "worker/model/train_observer.h"

namespace leeway::testing::observer {
namespace {

// The trained elements: conv2d 0-18 (weight) and 18-20 (bias), batch_norm 20-22 and 22-24, dense
// 24-88 and 88-90. The averaged elements: batch_norm's 90-92 and 92-94.
constexpr char kModel[] = R"(
    layers { conv2d { filters: 2 kernel: 3 padding: 1 } } layers { batch_norm {} } layers { relu {} }
    layers { flatten {} } layers { dense { units: 2 } } loss: LOSS_SOFTMAX_CROSS_ENTROPY)";
constexpr size_t kTotal = 94;

std::string Text(std::span<const ElementRange> elements) {
  std::string text;
  for (const ElementRange& range : elements) {
    text += " " + std::to_string(range.offset) + "-" + std::to_string(range.end());
  }
  return text;
}

class Notes : public TrainObserver {
 public:
  absl::Status BeforeForward(std::span<const ElementRange> elements) override {
    return Note("before" + Text(elements));
  }
  absl::Status AfterForward(double loss_sum, uint64_t examples) override {
    loss = loss_sum;
    return Note("after forward of " + std::to_string(examples));
  }
  absl::Status OnFinal(std::span<const ElementRange> elements, bool) override {
    if (on_final) on_final(elements);
    return Note("final" + Text(elements));
  }

  std::vector<std::string> notes;
  double loss = -1;
  // The note at which the observer returns an error.
  std::string fail_at;
  std::function<void(std::span<const ElementRange>)> on_final;

 private:
  absl::Status Note(const std::string& note) {
    notes.push_back(note);
    return note == fail_at ? absl::UnavailableError(note) : absl::OkStatus();
  }
};

struct Rig {
  std::unique_ptr<Backend> backend = TestBackend();
  std::unique_ptr<Model> model = BuildModel(kModel, {4, 4, 1}, 2, *backend);
  Batch batch = RandomBatch(5, 16, 2, 3);
  std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> contribution = std::vector<float>(kTotal);

  absl::StatusOr<double> Train(TrainObserver* observer) {
    return model->Train(batch, weights, {}, contribution, observer);
  }
};

TEST_CASE("an observer is told of each layer before its forward and after its backward") {
  Rig rig;
  REQUIRE(rig.model->schema().total() == kTotal);
  Notes notes;
  const auto loss = rig.Train(&notes);
  REQUIRE(loss.ok());
  CHECK(notes.loss == *loss);
  CHECK(notes.notes == std::vector<std::string>{"before 0-20", "before 20-24 90-92 92-94",
                                                "before 24-90", "after forward of 5",
                                                "final 90-92 92-94", "final 24-90", "final 20-24",
                                                "final 0-20"});
}

TEST_CASE("what is final stays as it is, and its weights are read no more") {
  Rig plain, rig;
  REQUIRE(plain.Train(nullptr).ok());
  Notes notes;
  std::vector<float> seen(kTotal, -1);
  // Like an exchange: what is final leaves at once, and the answer replaces the weights.
  notes.on_final = [&](std::span<const ElementRange> elements) {
    for (const ElementRange& range : elements) {
      std::copy_n(rig.contribution.begin() + range.offset, range.count,
                  seen.begin() + range.offset);
      std::fill_n(rig.weights.begin() + range.offset, range.count, 1e30f);
    }
  };
  REQUIRE(rig.Train(&notes).ok());
  CHECK(std::memcmp(seen.data(), plain.contribution.data(), kTotal * sizeof(float)) == 0);
  CHECK(std::memcmp(rig.contribution.data(), plain.contribution.data(), kTotal * sizeof(float)) ==
        0);
}

TEST_CASE("an empty batch is told as a whole, and writes its zeros when it may") {
  Rig rig;
  rig.batch = {};
  std::fill(rig.contribution.begin(), rig.contribution.end(), 7.0f);
  Notes notes;
  notes.fail_at = "before 0-94";
  CHECK(absl::IsUnavailable(rig.Train(&notes).status()));
  CHECK(rig.contribution == std::vector<float>(kTotal, 7.0f));
  notes = {};
  REQUIRE(rig.Train(&notes).ok());
  CHECK(notes.notes == std::vector<std::string>{"before 0-94", "after forward of 0", "final 0-94"});
  CHECK(rig.contribution == std::vector<float>(kTotal, 0.0f));
}

TEST_CASE("an observer's error ends the batch where it is") {
  for (const char* where : {"before 24-90", "after forward of 5", "final 24-90"}) {
    Rig rig;
    Notes notes;
    notes.fail_at = where;
    const absl::Status status = rig.Train(&notes).status();
    CHECK(absl::IsUnavailable(status));
    CHECK(status.message() == where);
    CHECK(notes.notes.back() == where);
  }
}

}  // namespace
}  // namespace leeway::testing::observer
