// A plain blocking stream socket, without any library, for messages of one known size. One system
// call sends a header with its payload, and one receives them. The kernel copies them directly
// between the socket and the tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/descriptor.h"

namespace leeway {

struct RawHeader {
  static constexpr uint32_t kData = 1;
  // The last message of a round.
  static constexpr uint32_t kEnd = 2;
  uint32_t kind = kData;
  uint32_t block = 0;
  uint64_t clock = 0;
};

// Movable. One thread may send while another receives. Errors name the peer: UNAVAILABLE if the
// peer is gone, DEADLINE_EXCEEDED if no byte moves for longer than the socket's patience.
class RawSocket {
 public:
  RawSocket() = default;
  // Errors call the other end `peer`.
  RawSocket(int fd, std::string peer) : fd_(fd), peer_(std::move(peer)) {}
  RawSocket(RawSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), peer_(std::move(other.peer_)) {}
  RawSocket& operator=(RawSocket&& other) noexcept;
  ~RawSocket();

  // Return the two ends of a connection, over TCP loopback or as a unix socket.
  static absl::StatusOr<std::pair<RawSocket, RawSocket>> TcpPair();
  static absl::StatusOr<std::pair<RawSocket, RawSocket>> UnixPair();
  // Connects by TCP to host:port or [host]:port, with the port in digits. Tries the host's
  // addresses in turn, and uses the first address that answers.
  static absl::StatusOr<RawSocket> Connect(const std::string& address,
                                           Duration patience = kPatience);

  // The default patience. Even over a network, a live peer sends or receives some bytes within this
  // time.
  static constexpr Duration kPatience = std::chrono::seconds(30);

  absl::Status Send(const RawHeader& header, std::span<const float> payload);
  // Receives exactly payload.size() floats.
  absl::Status Receive(RawHeader& header, std::span<float> payload);

  // The result of ReceiveHeaders(), which waits for a header without a payload and then takes all
  // headers that have come. `count` is their number, `last_kind` the last one's kind.
  struct Headers {
    uint64_t count = 0;
    uint32_t last_kind = RawHeader::kData;
  };
  absl::StatusOr<Headers> ReceiveHeaders();

  // Wakes threads that are sending or receiving. Their calls return an error.
  void Shutdown();
  int fd() const { return fd_; }

 private:
  // Returns the error for a failed call, from errno.
  absl::Status Failure(absl::string_view doing) const;
  // Sends or receives the whole header and payload by repeated calls of `transfer`.
  template <typename Transfer>
  absl::Status MoveAll(void* header, void* payload, size_t payload_bytes, absl::string_view doing,
                       Transfer transfer) const;

  int fd_ = -1;
  std::string peer_;
  // The bytes of a header that has not arrived completely.
  alignas(RawHeader) char partial_[sizeof(RawHeader)] = {};
  size_t partial_bytes_ = 0;
};

// Listens on host:port or [host]:port, on the first of the host's addresses that works. Port 0
// means any free port. Sets *port to the actual port.
absl::StatusOr<Descriptor> ListenTcp(const std::string& address, int* port);
// Accepts the next connection.
absl::StatusOr<RawSocket> AcceptTcp(const Descriptor& listener,
                                    Duration patience = RawSocket::kPatience);

}  // namespace leeway
