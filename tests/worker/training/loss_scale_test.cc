// fp16: steps that overflow are left out and counted, and halve the loss scale, which the next life
// takes over.
#include <cmath>

#include "tests/catch.h"
#include "tests/worker/training/exchange_rig.h"

namespace leeway::loss_scale {
namespace {

using testing::Delta;
using testing::Elastic;
using testing::Gradient;
using testing::LastExamples;
using testing::LastPushed;
using testing::Rig;
using testing::Sgd;

void InFp16(Rig& rig) { rig.job.mutable_workers()->set_precision(v1::PRECISION_FP16); }

v1::LossScale Scale(uint64_t clock, uint32_t log2) {
  v1::LossScale scale;
  scale.set_clock(clock);
  scale.set_log2(log2);
  return scale;
}

// Whether only finite values were sent.
bool AllFinite(const testing::FakeModel& model) {
  for (const auto& request : model.requests()) {
    for (const float value : request.values) {
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

TEST_CASE("gradient in fp16: a clock that overflows is left out whole and halves the scale") {
  const uint32_t accumulation = GENERATE(1u, 3u);
  Rig rig(Gradient(accumulation));
  InFp16(rig);
  rig.steps.scale_max = 16384;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  for (uint64_t clock = 0; clock < 4; ++clock) {
    const auto report =
        exchange->Run({.clock = clock, .first_step = clock * accumulation, .steps = accumulation});
    REQUIRE(report.ok());
    REQUIRE(exchange->Settle().ok());
    CAPTURE(clock, accumulation);
    const bool overflows = clock < 2;
    CHECK(report->left_out == overflows);
    CHECK(report->overflowed_steps == (overflows ? accumulation : 0));
    CHECK(report->loss_scale == (clock == 0 ? 32768 : 16384));
    CHECK(rig.steps.scales.back() == 65536 / std::min(1 << clock, 4));
    CHECK(LastExamples(*rig.model) == (overflows ? 0 : 2 * accumulation));
    CHECK((LastPushed(*rig.model, 0) == std::vector<float>(4, 0.0f)) == overflows);
    if (overflows) CHECK_THAT(report->why, Catch::Contains("the gradient of dense_0/bias[1] is "));
  }
  CHECK(AllFinite(*rig.model));
  REQUIRE(rig.reported.size() == 2);
  CHECK(rig.reported[0].clock() == 1);
  CHECK(rig.reported[0].log2() == 15);
  CHECK(rig.reported[1].clock() == 2);
  CHECK(rig.reported[1].log2() == 14);
  // The report comes before the clock's first contribution: one read, then two blocks a clock.
  CHECK(rig.sent_before_reports[1] - rig.sent_before_reports[0] == 2);
  CHECK(exchange->SaveState()->empty());
}

TEST_CASE("gradient in fp16: a loss that is not finite overflows, too") {
  Rig rig(Gradient(1));
  InFp16(rig);
  rig.steps.loss = NAN;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 1});
  REQUIRE(report.ok());
  CHECK(report->overflowed_steps == 1);
  CHECK(report->examples == 0);
  CHECK_THAT(report->why, Catch::Contains("the loss of step 0 is nan"));
  REQUIRE(exchange->Settle().ok());
  CHECK(LastExamples(*rig.model) == 0);
}

TEST_CASE("gradient in fp16: nothing is handed in while the new scale is not on record") {
  Rig rig(Gradient(1));
  InFp16(rig);
  rig.steps.scale_max = 1;
  rig.report_status = absl::UnavailableError("no coordinator");
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const size_t before = rig.model->requests().size();
  CHECK(absl::IsUnavailable(exchange->Run({.clock = 0, .first_step = 0, .steps = 1}).status()));
  CHECK(rig.model->requests().size() == before);
}

TEST_CASE("gradient in fp16: a new life goes on with the scales on record, whatever its clock") {
  Rig rig(Gradient(1));
  InFp16(rig);
  rig.loss_scales = {Scale(3, 10), Scale(5, 9)};
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(2).ok());
  for (uint64_t clock = 2; clock < 6; ++clock) {
    REQUIRE(exchange->Run({.clock = clock, .first_step = clock, .steps = 1}).ok());
  }
  REQUIRE(exchange->Run({.clock = 2005, .first_step = 6, .steps = 1}).ok());
  CHECK(rig.steps.scales == std::vector<float>{65536, 1024, 1024, 512, 1024});
  CHECK(rig.reported.empty());
}

TEST_CASE("gradient in fp16: at a scale of 1 it is the job's to say, and the error suggests bf16") {
  const v1::BadGradient choice = GENERATE(v1::BAD_GRADIENT_REJECT, v1::BAD_GRADIENT_SKIP);
  v1::Exchange type = Gradient(1);
  type.set_on_bad_gradient(choice);
  Rig rig(type);
  InFp16(rig);
  rig.loss_scales = {Scale(1, 0)};
  rig.steps.scale_max = 0.5;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(7).ok());
  const auto report = exchange->Run({.clock = 7, .first_step = 7, .steps = 1});
  CHECK(rig.reported.empty());
  if (choice == v1::BAD_GRADIENT_SKIP) {
    REQUIRE(report.ok());
    CHECK(report->left_out);
    CHECK(report->overflowed_steps == 0);
    return;
  }
  CHECK(report.status().code() == absl::StatusCode::kOutOfRange);
  for (const char* text : {"worker 2, clock 7", "dense_0/bias[1] is -inf", "bf16"}) {
    CHECK_THAT(std::string(report.status().message()), Catch::Contains(text));
  }
}

TEST_CASE("other precisions scale nothing, and say nothing of it") {
  for (const v1::Precision precision :
       {v1::PRECISION_FP32, v1::PRECISION_TF32, v1::PRECISION_BF16}) {
    Rig rig(Gradient(1));
    rig.job.mutable_workers()->set_precision(precision);
    rig.steps.scale_max = 1;
    auto exchange = rig.Make();
    REQUIRE(exchange->Begin(0).ok());
    const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 1});
    REQUIRE(report.ok());
    CHECK(report->loss_scale == 0);
    CHECK(rig.steps.scales == std::vector<float>{1});
  }
}

TEST_CASE("local steps in fp16: one that overflows is as if it had not been, but for the scale") {
  const v1::Exchange type = GENERATE(Delta(Sgd(0.5, 0.9)), Elastic(0.5, Sgd(0.5, 0.9)));
  Rig rig(type), plain(type);
  InFp16(rig);
  InFp16(plain);
  // The second and third of five steps overflow, because their gradients would overflow at any
  // scale above the limit.
  rig.steps.gradient = [&](uint64_t step) {
    rig.steps.scale_max = step == 1 || step == 2 ? 100 : 65536;
    return step == 0 ? 1.0f : static_cast<float>(step);
  };
  plain.steps.gradient = [](uint64_t step) {
    return step == 0 ? 1.0f : static_cast<float>(step + 2);
  };
  auto exchange = rig.Make(), other = plain.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(other->Begin(0).ok());
  const auto report = exchange->Run({.clock = 0, .first_step = 0, .steps = 5});
  REQUIRE(report.ok());
  const auto expected = other->Run({.clock = 0, .first_step = 0, .steps = 3});
  REQUIRE(expected.ok());
  CHECK(report->overflowed_steps == 2);
  CHECK(report->loss_scale == 16384);
  CHECK(report->examples == expected->examples);
  CHECK(report->loss_sum == expected->loss_sum);
  CHECK(rig.steps.scales == std::vector<float>{65536, 65536, 32768, 16384, 16384});
  CHECK(LastPushed(*rig.model, 0) == LastPushed(*plain.model, 0));
  CHECK(LastPushed(*rig.model, 1) == LastPushed(*plain.model, 1));
  CHECK(LastExamples(*rig.model) == LastExamples(*plain.model));
  CHECK(AllFinite(*rig.model));
  CHECK(rig.reported.empty());
}

TEST_CASE("local steps in fp16: a clock without examples reports the scale, too") {
  const v1::Exchange type = GENERATE(Delta(Sgd(0.5)), Elastic(0.5, Sgd(0.5)));
  Rig rig(type);
  InFp16(rig);
  rig.steps.scale_max = 16384;
  rig.steps.examples = [](uint64_t step) { return step < 4 ? 2 : 0; };
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 4}).ok());
  const auto report = exchange->Run({.clock = 1, .first_step = 4, .steps = 2});
  REQUIRE(report.ok());
  CHECK(report->examples == 0);
  CHECK(report->loss_scale == 16384);
}

TEST_CASE("local steps in fp16: the scale and its clean steps go on with the state") {
  const v1::Exchange type = GENERATE(Delta(Sgd(0.5)), Elastic(0.5, Sgd(0.5)));
  Rig rig(type);
  InFp16(rig);
  rig.steps.scale_max = 16384;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  REQUIRE(exchange->Run({.clock = 0, .first_step = 0, .steps = 4}).ok());
  const auto state = exchange->SaveState();
  REQUIRE(state.ok());
  auto next = rig.Make();
  REQUIRE(next->LoadState(*state).ok());
  REQUIRE(next->Begin(1).ok());
  // Two steps were clean; 1998 more double the scale.
  rig.steps.scale_max = INFINITY;
  const auto report = next->Run({.clock = 1, .first_step = 4, .steps = 1998});
  REQUIRE(report.ok());
  CHECK(rig.steps.scales.back() == 16384);
  CHECK(report->loss_scale == 32768);
}

TEST_CASE("local steps in fp16: at a scale of 1 an overflow ends the clock, and suggests bf16") {
  Rig rig(Delta(Sgd(0.5)));
  InFp16(rig);
  rig.steps.scale_max = 0.5;
  auto exchange = rig.Make();
  REQUIRE(exchange->Begin(0).ok());
  const auto sixteen = exchange->Run({.clock = 0, .first_step = 0, .steps = 16});
  REQUIRE(sixteen.ok());
  CHECK(sixteen->overflowed_steps == 16);
  CHECK(sixteen->loss_scale == 1);
  CHECK(sixteen->examples == 0);
  CHECK(LastPushed(*rig.model, 0) == std::vector<float>(4, 0.0f));
  const auto report = exchange->Run({.clock = 1, .first_step = 16, .steps = 1});
  CHECK(report.status().code() == absl::StatusCode::kOutOfRange);
  for (const char* text : {"worker 2, clock 1, step 16", "dense_0/bias[1] is -inf", "bf16"}) {
    CHECK_THAT(std::string(report.status().message()), Catch::Contains(text));
  }
}

}  // namespace
}  // namespace leeway::loss_scale
