// A service whose calls are looked at before their messages are read.
#pragma once

#include <string>

#include <google/protobuf/descriptor.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/async_stream.h>

namespace leeway {

// `Generated`: v1::Coordinator::Service, and which of its methods that are streams are asynchronous
// or raw. Its unary methods are known to gRPC as streams of one message each way, which are the
// same on the wire. gRPC reads the message of a unary call, of up to kMessageBytesMax, before it
// says that there is one; a stream it hands over with its metadata.
template <typename Generated>
class AdmittedService : public Generated {
 public:
  // `service`: leeway.v1.Coordinator.
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

  // The next call of the unary method with this number, as the contract counts.
  void RequestCall(int method, grpc::ServerContext* context,
                   grpc::internal::ServerAsyncStreamingInterface* stream,
                   grpc::ServerCompletionQueue* queue, void* tag) {
    this->RequestAsyncBidiStreaming(method, context, stream, queue, queue, tag);
  }
};

}  // namespace leeway
