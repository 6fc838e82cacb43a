// The head of one frame (RequestFrame, ReplyFrame). It has up to some hundreds of small messages,
// which share an arena that lives as long as this object. So a message needs no allocation of its
// own, and a stream does not keep the memory of a large head.
#pragma once

#include <array>
#include <cstddef>

#include <google/protobuf/arena.h>

namespace leeway {

template <typename Head>
class FrameHead {
 public:
  FrameHead() : arena_(Options()), head_(google::protobuf::Arena::CreateMessage<Head>(&arena_)) {}
  FrameHead(const FrameHead&) = delete;
  FrameHead& operator=(const FrameHead&) = delete;

  Head& operator*() const { return *head_; }
  Head* operator->() const { return head_; }

 private:
  // The bytes in the object itself, which have room for the heads of about ten exchanges.
  static constexpr size_t kAtHand = 2 << 10;

  google::protobuf::ArenaOptions Options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = at_hand_.data();
    options.initial_block_size = at_hand_.size();
    return options;
  }

  alignas(std::max_align_t) std::array<char, kAtHand> at_hand_;
  google::protobuf::Arena arena_;
  Head* const head_;
};

}  // namespace leeway
