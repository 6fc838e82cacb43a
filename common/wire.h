// The data plane's bytes. A message is `header = 1; bytes payload = 2`; protobuf handles the header
// only. Sending adds the payload as slices that refer to the tensor's own memory; receiving leaves
// it in the slices that the network filled (FloatPayload). Stock stubs see an ordinary message.
#pragma once

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/payload.h"

namespace grpc {
class ByteBuffer;
}

namespace leeway {

namespace v1 {
class ExchangeHeader;
class VersionHeader;
}  // namespace v1

// `values` are not copied: `owner` keeps them alive until gRPC has sent them (null: the caller
// does).
grpc::ByteBuffer EncodePush(const v1::ExchangeHeader& header, std::span<const float> values,
                            std::shared_ptr<const void> owner);
grpc::ByteBuffer EncodePullReply(const v1::VersionHeader& header, std::span<const float> values,
                                 std::shared_ptr<const void> owner);

// INVALID_ARGUMENT, naming the field, for bytes that are no such message or a payload that is not
// whole floats. Fields unknown to this build are passed over, as protobuf does. The payload keeps
// the received slices alive.
absl::StatusOr<FloatPayload> DecodePush(const grpc::ByteBuffer& buffer, v1::ExchangeHeader& header);
absl::StatusOr<FloatPayload> DecodePullReply(const grpc::ByteBuffer& buffer,
                                             v1::VersionHeader& header);

}  // namespace leeway
