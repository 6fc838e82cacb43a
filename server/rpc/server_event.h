// What the server's completion queue gives back.
#pragma once

namespace leeway {

// The tag of an operation on the completion queue; lives until Run.
class ServerEvent {
 public:
  virtual ~ServerEvent() = default;
  // On one of the queue's threads. `ok` as gRPC says it.
  virtual void Run(bool ok) = 0;
};

}  // namespace leeway
