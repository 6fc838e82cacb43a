// What `auto` stands for.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "common/clock.h"
#include "common/codec/codec.h"
#include "leeway/v1/job.pb.h"

namespace leeway {

// Bytes of float32 that one thread encodes, with error feedback, and decodes, a second.
struct CodecRates {
  double encode = 0;
  double decode = 0;
};

// Encodes and decodes blocks in the cache, again and again, for about `seconds` by `now`.
CodecRates MeasureCodec(const Codec& codec, double seconds, const std::function<Time()>& now);

struct AutoRates {
  CodecRates bf16;
  CodecRates int8;
};
// Both, for about a tenth of a second in all.
AutoRates MeasureAutoCodecs(const std::function<Time()>& now = [] {
  return std::chrono::steady_clock::now();
});

// Of none, bf16 and int8 the one that brings a block over a link of `link` bytes a second soonest:
// encoding, sending and decoding are added, as if none went on while another does. A choice that
// loses more must be faster by a tenth. Pure; rates or a link that are not above 0 give none.
v1::Codec ChooseCodec(double link, const AutoRates& rates);

// As a job names it: int8.
std::string NameOf(const v1::Codec& codec);

// Says so in some codec of the job.
bool HasAuto(const v1::Compression& compression);
// Puts `choice` in every place of `auto`.
void ResolveAuto(const v1::Codec& choice, v1::Compression& compression);

}  // namespace leeway
