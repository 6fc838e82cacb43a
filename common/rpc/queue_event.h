// The events of a gRPC completion queue, in servers and workers.
#pragma once

#include "common/hand_over.h"

namespace leeway {

// An operation on a completion queue. The queue synchronises the thread that begins the operation
// with the thread that takes the event from the queue.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // Returns the tag for beginning the operation. The event must live until it has run.
  void* Tag() {
    HandOver(this);
    return this;
  }
  // Runs the event of a tag. Call this function on the thread that has taken the tag from the
  // queue. `ok` is gRPC's result.
  static void RunTag(void* tag, bool ok) {
    TakeOver(tag);
    static_cast<QueueEvent*>(tag)->Run(ok);
  }

 private:
  virtual void Run(bool ok) = 0;
};

// An event that calls a member function of an object.
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
