// A file descriptor that closes itself.
#pragma once

#include <utility>

#include <unistd.h>

namespace leeway {

class Descriptor {
 public:
  // Takes ownership of the descriptor. A number below 0, which system calls return after an error,
  // means that there is no descriptor.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int operator*() const { return number_; }
  // Gives up ownership and returns the number. The descriptor stays open.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace leeway
