// SHA-256, as lower-case hexadecimal.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace leeway {

// A digest in the making. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  void Update(std::span<const uint8_t> bytes);
  // Of everything so far; no other call may follow.
  std::string Hex();

 private:
  struct Free {
    void operator()(void* context) const;
  };
  std::unique_ptr<void, Free> context_;
};

std::string HexSha256(std::string_view bytes);

// Of the weights' little-endian float32 bytes: equal if and only if the models are bit-identical.
std::string WeightsSha256(std::span<const float> weights);

}  // namespace leeway
