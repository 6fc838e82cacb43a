#include "worker/data/libsvm.h"

#include "tests/worker/data/data_test_util.h"

namespace leeway::libsvm {
namespace {

using absl::StatusCode;

absl::StatusOr<Examples> Parse(const std::string& text, uint32_t features = 5,
                               v1::Loss loss = v1::LOSS_LOGISTIC) {
  v1::Libsvm options;
  options.set_features(features);
  return ParseLibsvm(TextFile("f", text), options, loss);
}

void RequireBad(const std::string& text, const std::vector<std::string>& parts) {
  INFO(text);
  RequireError(Parse(text), StatusCode::kInvalidArgument, parts);
}

TEST_CASE("libsvm lines become dense rows") {
  absl::StatusOr<Examples> examples = Parse("-1 1:0.5 3:-2 \n\n+1\t5:1e1 # a remark\r\n1\n");
  REQUIRE(examples.ok());
  CHECK(examples->shape == ImageShape{1, 1, 5});
  CHECK(examples->labels == std::vector<float>{0, 1, 1});
  CHECK(std::get<std::vector<float>>(examples->values) ==
        std::vector<float>{0.5, 0, -2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0});
}

TEST_CASE("Each way in which a libsvm line can be wrong names file, line and feature") {
  RequireBad("1 1:1\n1 0:2\n", {"f:2: feature 0", "count from 1"});
  RequireBad("1 6:2\n", {"f:1: feature 6", "exceeds libsvm.features, which is 5"});
  RequireBad("1 99999999999999999999:2\n", {"f:1", "index:value"});
  RequireBad("1 3:1 2:1\n", {"f:1: feature 2", "follows feature 3"});
  RequireBad("1 3:1 3:1\n", {"f:1: feature 3", "follows feature 3"});
  RequireBad("1 3:x\n", {"f:1: feature 3", "'x'"});
  RequireBad("1 3:\n", {"f:1: feature 3", "empty"});
  RequireBad("1 3:nan\n", {"f:1: feature 3"});
  RequireBad("1 3:1e99\n", {"f:1: feature 3"});
  RequireBad("1 -3:1\n", {"f:1", "'-3:1'"});
  RequireBad("1 3\n", {"f:1", "'3'", "index:value"});
  RequireBad("1 :\n", {"f:1", "':'"});
  RequireBad("1 3:1:2\n", {"f:1: feature 3", "'1:2'"});
  RequireBad("1:1 2:1\n", {"f:1: label", "'1:1'"});
  RequireBad("2 1:1\n", {"f:1", "label 2", "logistic"});
  RequireBad("1 1:1\n-1 1:1\n0 1:1\n", {"f:3: label 0", "or -1 and 1"});
  RequireBad("# nothing\n\n", {"f", "no examples"});
}

TEST_CASE("libsvm rows that would not fit densely are refused before they are made") {
  std::string text;
  for (int i = 0; i < 500; ++i) text += "1\n";
  RequireError(Parse(text, 4'000'000'000u), StatusCode::kResourceExhausted, {"f:1", "4000000000"});
  CHECK(Parse(text, 1000).ok());
}

TEST_CASE(
    "Every truncation and every flipped bit of a libsvm file is read or refused, never worse") {
  const std::string text = "-1 1:0.5 3:-2\n+1 2:1e1 5:7\n";
  for (size_t size = 0; size <= text.size(); ++size) (void)Parse(text.substr(0, size)).ok();
  for (size_t at = 0; at < text.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << bit));
      absl::StatusOr<Examples> examples = Parse(damaged);
      if (examples.ok()) {
        CHECK(std::get<std::vector<float>>(examples->values).size() == examples->size() * 5);
      } else {
        CHECK(Contains(examples.status(), "f"));
      }
    }
  }
}

}  // namespace
}  // namespace leeway::libsvm
