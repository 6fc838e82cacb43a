// What a completion queue gives back.
#pragma once

#include <utility>

namespace leeway {

// The tag of an operation on the completion queue; lives until Run.
class QueueEvent {
 public:
  virtual ~QueueEvent() = default;
  // On the queue's thread. `ok` as gRPC says it.
  virtual void Run(bool ok) = 0;
};

// Calls a member function.
template <typename Object>
class MemberEvent : public QueueEvent {
 public:
  using Function = void (Object::*)(bool ok);
  MemberEvent(Object* object, Function function) : object_(object), function_(function) {}
  void Run(bool ok) override { (object_->*function_)(ok); }

 private:
  Object* const object_;
  const Function function_;
};

}  // namespace leeway
