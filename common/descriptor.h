// A file descriptor that closes itself.
#pragma once

#include <utility>

#include <unistd.h>

namespace leeway {

class Descriptor {
 public:
  // Takes ownership of the descriptor. A number below 0 means none, as system calls return it.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int operator*() const { return number_; }
  // Gives up ownership: the descriptor stays open.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace leeway
