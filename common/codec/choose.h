// Chooses a codec for a job whose configuration says `auto`.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/codec/codec.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// How many bytes of float32 one thread encodes (with error feedback) per second, and how many it
// decodes per second.
struct CodecRates {
  double encode = 0;
  double decode = 0;
};

// Measures the rates of a codec. Encodes and decodes a block that fits in the cache, again and
// again for about `seconds`. `now` is the clock.
CodecRates MeasureCodec(const Codec& codec, double seconds, const std::function<Time()>& now);

struct AutoRates {
  CodecRates bf16;
  CodecRates int8;
};
// Measures bf16 and int8, in about a tenth of a second in all.
AutoRates MeasureAutoCodecs(const std::function<Time()>& now = [] {
  return std::chrono::steady_clock::now();
});

// Returns the codec (none, bf16 or int8) that transfers a block fastest over a link of `link` bytes
// a second. The estimate adds the times to encode, send and decode, as if they did not overlap. A
// codec that loses more precision is chosen only if it is a tenth faster. Returns none unless all
// rates and `link` are above 0. Pure.
v1::Codec ChooseCodec(double link, const AutoRates& rates);

// Returns the name that a job uses for the codec, such as int8.
std::string NameOf(const v1::Codec& codec);

// Returns whether a codec of the job is `auto`.
bool HasAuto(const v1::Compression& compression);
// Replaces each `auto` with `choice`.
void ResolveAuto(const v1::Codec& choice, v1::Compression& compression);

}  // namespace leeway
