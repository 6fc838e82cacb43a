// The tensors of a program, which may come from other programs.
#include "library/schema.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace leeway::schema {
namespace {

std::vector<JobTensor> Tensors() {
  return {{.name = "w", .shape = {3, 4}},
          {.name = "b", .shape = {4}, .kind = TensorKind::kBias, .weight_decay_factor = 0},
          {.name = "mean", .shape = {4}, .averaged = true, .momentum = 0.25}};
}

TEST_CASE("tensors lie one behind the other, and come back") {
  const auto schema = SchemaOf(Tensors());
  REQUIRE(schema.ok());
  CHECK(schema->trained() == 16);
  CHECK(schema->total() == 20);
  CHECK(schema->tensors(1).offset() == 12);
  CHECK(schema->tensors(1).factors().weight_decay() == 0);
  CHECK(schema->tensors(1).factors().learning_rate() == 1);
  CHECK(!schema->tensors(0).has_factors());
  const auto back = TensorsOf(*schema);
  REQUIRE(back.size() == 3);
  CHECK(back[0].shape == std::vector<uint64_t>{3, 4});
  CHECK(back[1].kind == TensorKind::kBias);
  CHECK(back[1].weight_decay_factor == 0);
  CHECK(back[2].averaged);
  CHECK(back[2].momentum == 0.25);
}

TEST_CASE("what is wrong with a tensor is said by its name") {
  struct Mistake {
    const char* says;
    std::function<void(std::vector<JobTensor>&)> make;
  };
  const Mistake mistakes[] = {
      {"no name", [](auto& all) { all[0].name = ""; }},
      {"'w': another tensor", [](auto& all) { all[1].name = "w"; }},
      {"'w': a dimension",
       [](auto& all) {
         all[0].shape = {3, 0};
       }},
      {"'w': it has too many",
       [](auto& all) {
         all[0].shape = {uint64_t{1} << 40, uint64_t{1} << 40};
       }},
      {"'b': it is trained", [](auto& all) { all[0].averaged = true; }},
      {"'mean': its momentum is 0", [](auto& all) { all[2].momentum = 0; }},
      {"'mean': its momentum", [](auto& all) { all[2].momentum = NAN; }},
      {"'b': a factor", [](auto& all) { all[1].learning_rate_factor = -1; }},
      {"'b': a factor",
       [](auto& all) { all[1].weight_decay_factor = std::numeric_limits<double>::infinity(); }},
  };
  for (const Mistake& mistake : mistakes) {
    INFO(mistake.says);
    auto tensors = Tensors();
    mistake.make(tensors);
    const auto schema = SchemaOf(tensors);
    REQUIRE(absl::IsInvalidArgument(schema.status()));
    CHECK(std::string(schema.status().message()).find(mistake.says) != std::string::npos);
  }
}

TEST_CASE("tensors that are not the job's are named, with what the job has there") {
  const auto own = SchemaOf(Tensors());
  CHECK(CheckSame(*own, *own).ok());
  const auto says = [&](const std::vector<JobTensor>& job) {
    const absl::Status status = CheckSame(*own, *SchemaOf(job));
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  auto tensors = Tensors();
  tensors[0].shape = {4, 3};
  CHECK(
      says(tensors).find("tensor 0 of this worker is 'w' of shape [3, 4], but the job's is 'w' of "
                         "shape [4, 3]") == 0);
  tensors = Tensors();
  tensors[1].name = "c";
  CHECK(says(tensors).find("tensor 1 of this worker is 'b' of shape [4], but the job's is 'c'") ==
        0);
  tensors = Tensors();
  tensors.pop_back();
  CHECK(says(tensors).find("but the job's is missing") != std::string::npos);
  tensors = Tensors();
  tensors.push_back({.name = "more", .shape = {}, .averaged = true});
  CHECK(says(tensors).find(
            "tensor 3 of this worker is missing, but the job's is 'more' of shape []") == 0);
}

}  // namespace
}  // namespace leeway::schema
