// What a gRPC completion queue gives back, in servers and workers.
#pragma once

#include "common/hand_over.h"

namespace leeway {

// An operation on a completion queue. The queue orders the thread that begins the operation before
// the thread that takes it from the queue.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // Returns the tag with which to begin the operation. The event must live until it has run.
  void* Tag() {
    HandOver(this);
    return this;
  }
  // Runs an event that a queue has given back, on the thread that took it. `ok` is gRPC's result.
  static void RunTag(void* tag, bool ok) {
    TakeOver(tag);
    static_cast<QueueEvent*>(tag)->Run(ok);
  }

 private:
  virtual void Run(bool ok) = 0;
};

// Calls a member function of an object.
template <typename Object>
class MemberEvent : public QueueEvent {
 public:
  using Function = void (Object::*)(bool ok);
  MemberEvent(Object* object, Function function) : object_(object), function_(function) {}

 private:
  void Run(bool ok) override { (object_->*function_)(ok); }

  Object* const object_;
  const Function function_;
};

}  // namespace leeway
