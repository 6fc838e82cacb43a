// Chooses the codec for `auto`.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/codec/codec.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// The bytes of float32 that one thread encodes (with error feedback) and decodes in a second.
struct CodecRates {
  double encode = 0;
  double decode = 0;
};

// Encodes and decodes blocks in the cache repeatedly for about `seconds`, measured by `now`.
CodecRates MeasureCodec(const Codec& codec, double seconds, const std::function<Time()>& now);

struct AutoRates {
  CodecRates bf16;
  CodecRates int8;
};
// Measures both codecs, in about a tenth of a second in all.
AutoRates MeasureAutoCodecs(const std::function<Time()>& now = [] {
  return std::chrono::steady_clock::now();
});

// Returns none, bf16 or int8, whichever transfers a block fastest over a link of `link` bytes a
// second. The times to encode, send and decode are added, as if they did not overlap. A choice that
// loses more precision must be faster by a tenth. Pure. Returns none unless all rates and the link
// are above 0.
v1::Codec ChooseCodec(double link, const AutoRates& rates);

// Returns the name that a job uses for the codec, such as int8.
std::string NameOf(const v1::Codec& codec);

// Whether some codec of the job is `auto`.
bool HasAuto(const v1::Compression& compression);
// Replaces each `auto` by `choice`.
void ResolveAuto(const v1::Codec& choice, v1::Compression& compression);

}  // namespace leeway
