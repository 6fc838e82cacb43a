// A service that can check a call before it reads the call's message.
#pragma once

#include <string>

#include <google/protobuf/descriptor.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

namespace leeway {

// `Generated` is a class such as v1::Coordinator::Service, with its streaming methods made
// asynchronous or raw. This class registers the unary methods as streams with one message in each
// direction, which are the same on the wire. The reason is that gRPC reads the message of a unary
// call, up to kMessageBytesMax, before it reports the call. It reports a stream when only its
// metadata has arrived.
template <typename Generated>
class AdmittedService : public Generated {
 public:
  // `service` is a full name, such as leeway.v1.Coordinator.
  explicit AdmittedService(const std::string& service) {
    const auto* const descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
    for (int i = 0; i < descriptor->method_count(); ++i) {
      const auto* const method = descriptor->method(i);
      if (method->client_streaming() || method->server_streaming()) continue;
      this->MarkMethodStreamed(i, nullptr);
      this->MarkMethodAsync(i);
    }
  }

  // Accepts the next call of the unary method with this index in the service's definition.
  void RequestCall(int method, grpc::ServerContext* context,
                   grpc::internal::ServerAsyncStreamingInterface* stream,
                   grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(method, context, stream, queue, queue, tag);
  }
};

}  // namespace leeway
