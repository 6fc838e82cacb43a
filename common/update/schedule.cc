#include "common/update/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace leeway {
namespace {

// Tolerates rounding errors in converted epochs. Without this, a step of the schedule could come a
// clock late, because a product such as 2.2 * 25 is rounded to slightly above 55.
constexpr double kRounding = 1e-9;

}  // namespace

double RateScale(v1::RateScaling scaling, uint32_t workers) {
  const double count = std::max<uint32_t>(workers, 1);
  switch (scaling) {
    case v1::RATE_SCALING_LINEAR:
      return count;
    case v1::RATE_SCALING_SQUARE_ROOT:
      return std::sqrt(count);
    case v1::RATE_SCALING_NONE:
      break;
  }
  return 1;
}

Schedule Schedule::OverClocks(const v1::Update& update, const v1::JobLength& length,
                              uint32_t workers) {
  const auto per_clock = static_cast<double>(std::max<uint64_t>(length.steps_per_clock(), 1));
  return Schedule(update,
                  {.per_clock = 1,
                   .per_epoch = static_cast<double>(length.steps_per_epoch()) / per_clock,
                   .clocks_begin = 0,
                   .epochs_begin = static_cast<double>(length.first_clock()) -
                                   static_cast<double>(length.first_step()) / per_clock,
                   .end = static_cast<double>(length.clocks()),
                   .ends_by_clocks = length.ends_by_clocks()},
                  workers);
}

Schedule Schedule::OverSteps(const v1::Update& update, const v1::JobLength& length,
                             uint32_t workers) {
  return Schedule(update,
                  {.per_clock = static_cast<double>(length.steps_per_clock()),
                   .per_epoch = static_cast<double>(length.steps_per_epoch()),
                   .clocks_begin = static_cast<double>(length.first_step()) -
                                   static_cast<double>(length.first_clock()) *
                                       static_cast<double>(length.steps_per_clock()),
                   .epochs_begin = 0,
                   .end = static_cast<double>(length.steps()),
                   .ends_by_clocks = length.ends_by_clocks()},
                  workers);
}

Schedule::Stretch Schedule::StretchOf(const v1::Interval& interval, const Units& units) {
  if (interval.has_epochs()) {
    return {units.epochs_begin, std::max(interval.epochs() * units.per_epoch, 1.0)};
  }
  const double length = static_cast<double>(interval.clocks()) * units.per_clock;
  return {units.clocks_begin, std::max(length, 1.0)};
}

Schedule::Stretch Schedule::WholeRun(const Units& units) {
  const double begin = units.ends_by_clocks ? units.clocks_begin : units.epochs_begin;
  return {begin, std::max(units.end - begin, 1.0)};
}

Schedule::Schedule(const v1::Update& update, const Units& units, uint32_t workers)
    : scaling_(update.scaling()),
      rate_(update.learning_rate()),
      scale_(RateScale(scaling_, workers)),
      type_(update.schedule().type_case()) {
  const v1::Schedule& schedule = update.schedule();
  if (schedule.has_step()) {
    period_ = StretchOf(schedule.step().every(), units);
    factor_ = schedule.step().factor();
  } else if (schedule.has_cosine()) {
    period_ =
        schedule.cosine().has_over() ? StretchOf(schedule.cosine().over(), units) : WholeRun(units);
    factor_ = schedule.cosine().final_factor();
  }
  if (schedule.has_warm_up()) warm_up_ = StretchOf(schedule.warm_up(), units);
}

double Schedule::Factor(double time) const {
  switch (type_) {
    case v1::Schedule::kStep:
      return std::pow(factor_, std::floor(period_.Parts(time) + kRounding));
    case v1::Schedule::kCosine: {
      const double angle = std::numbers::pi * std::min(period_.Parts(time), 1.0);
      return factor_ + (1 - factor_) * (1 + std::cos(angle)) / 2;
    }
    case v1::Schedule::kConstant:
    case v1::Schedule::TYPE_NOT_SET:
      break;
  }
  return 1;
}

double Schedule::WarmUp(double time) const {
  if (!warm_up_) return 1;
  if (scaling_ == v1::RATE_SCALING_NONE) return std::min(warm_up_->Parts(time + 1), 1.0);
  return 1 / scale_ + (1 - 1 / scale_) * std::min(warm_up_->Parts(time), 1.0);
}

float Schedule::LearningRate(uint64_t time) const {
  const auto now = static_cast<double>(time);
  return static_cast<float>(rate_ * scale_ * WarmUp(now) * Factor(now));
}

float Schedule::ShareOfRate(uint64_t time, uint32_t members) const {
  const auto now = static_cast<double>(time);
  const double share = rate_ * RateScale(scaling_, members) / members;
  return static_cast<float>(share * WarmUp(now) * Factor(now));
}

}  // namespace leeway
