// An update rule's step as numbers, so that a device which cannot call UpdateRule::Apply computes
// the same bits. common/update/{sgd,adagrad,adam,adamw,lion}.cc have the papers.
#pragma once

#include <cmath>
#include <cstdint>

#include "common/host_device.h"
#include "common/update/adam_moments.h"
#include "common/update/lion_moment.h"

namespace leeway {

struct UpdateFormula {
  enum class Kind : uint8_t { kNone, kSgd, kMomentum, kNesterov, kAdagrad, kAdam, kAdamW, kLion };

  // One element's weight and slots. A step replaces them with their next values.
  struct Element {
    float weight = 0;
    float slots[2] = {0, 0};
  };

  LEEWAY_HOST_DEVICE Element Apply(const Element& in, float gradient) const {
    switch (kind) {
      case Kind::kSgd:
        return {in.weight - rate * (gradient + decay * in.weight), {}};
      case Kind::kMomentum:
      case Kind::kNesterov:
        return Momentum(in, gradient + decay * in.weight);
      case Kind::kAdagrad:
        return Adagrad(in, gradient + decay * in.weight);
      case Kind::kAdam:
        return Adam(in, in.weight, gradient + decay * in.weight);
      case Kind::kAdamW:
        return Adam(in, kept * in.weight, gradient);
      case Kind::kLion: {
        const float weight = lion.Moved(kept * in.weight, in.slots[0], gradient);
        return {weight, {lion.First(in.slots[0], gradient), 0}};
      }
      case Kind::kNone:
        break;
    }
    return in;
  }

  Kind kind = Kind::kNone;
  float rate = 0;
  float decay = 0;
  float momentum = 0;
  float epsilon = 0;
  // For AdamW and Lion: the share of a weight that weight decay leaves.
  float kept = 1;
  AdamFactors adam = {};
  LionFactors lion = {};

 private:
  LEEWAY_HOST_DEVICE Element Momentum(const Element& in, float g) const {
    const float velocity = momentum * in.slots[0] + g;
    const float move = kind == Kind::kNesterov ? g + momentum * velocity : velocity;
    return {in.weight - rate * move, {velocity, 0}};
  }
  LEEWAY_HOST_DEVICE Element Adagrad(const Element& in, float g) const {
    const float sum = in.slots[0] + g * g;
    return {in.weight - rate * g / (std::sqrt(sum) + epsilon), {sum, 0}};
  }
  LEEWAY_HOST_DEVICE Element Adam(const Element& in, float weight, float g) const {
    const float first = adam.First(in.slots[0], g);
    const float second = adam.Second(in.slots[1], g);
    return {weight - adam.Move(first, second), {first, second}};
  }
};

}  // namespace leeway
