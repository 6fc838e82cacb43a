// A file descriptor that closes itself.
#pragma once

#include <utility>

#include <unistd.h>

namespace leeway {

class Descriptor {
 public:
  // Takes it over; below 0: none, as the system calls answer.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }

  int operator*() const { return number_; }
  // Gives it away: it stays open.
  int Release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

}  // namespace leeway
