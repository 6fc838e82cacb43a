#include "common/rpc/health_port.h"

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/security/credentials.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/descriptor.h"
#include "health/health.pb.h"
#include "tests/catch.h"
#include "tests/log_capture.h"

namespace leeway::health_port {
namespace {

constexpr Duration kLimit = std::chrono::seconds(5);
constexpr char kService[] = "leeway.v1.ParameterServer";

std::unique_ptr<HealthPort> Port() {
  auto port = HealthPort::Start("127.0.0.1:0");
  REQUIRE(port.ok());
  return *std::move(port);
}

TEST_CASE("a health port says of the process and of each service whether it serves") {
  const auto port = Port();
  CHECK(CheckHealth(port->address(), "", kLimit).ok());
  const absl::Status unknown = CheckHealth(port->address(), kService, kLimit);
  CHECK(absl::IsNotFound(unknown));
  CHECK_THAT(std::string(unknown.message()), Catch::Contains(kService));
  for (const bool serving : {false, true, false}) {
    port->Set(kService, serving);
    const absl::Status status = CheckHealth(port->address(), kService, kLimit);
    CHECK(status.ok() == serving);
    CHECK((serving || absl::IsUnavailable(status)));
  }
  CHECK(CheckHealth(port->address(), "", kLimit).ok());
}

// Returns what a stranger gets for another call.
grpc::StatusCode Call(const std::string& address, const std::string& method,
                      const std::string& text) {
  grpc::TemplatedGenericStub<health::HealthCheckRequest, health::HealthCheckResponse> stub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  health::HealthCheckRequest request;
  request.set_service(text);
  health::HealthCheckResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareUnaryCall(&context, method, request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status.error_code();
}

TEST_CASE("a health port answers nothing else, and takes no large messages") {
  const auto port = Port();
  CHECK(Call(port->address(), "/grpc.health.v1.Health/Check", "") == grpc::StatusCode::OK);
  CHECK(Call(port->address(), "/leeway.v1.Coordinator/GetJobStatus", "") ==
        grpc::StatusCode::UNIMPLEMENTED);
  CHECK(Call(port->address(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
             "") == grpc::StatusCode::UNIMPLEMENTED);
  CHECK(Call(port->address(), "/grpc.health.v1.Health/Check", std::string(32 << 10, 'x')) ==
        grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_CASE("a crowd that says nothing takes a few files, and probes are answered meanwhile") {
  const testing::LogCapture log;
  const auto port = Port();
  const auto number =
      static_cast<uint16_t>(std::stoi(port->address().substr(port->address().rfind(':') + 1)));
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 300; ++i) {
    crowd.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(number);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(*crowd.back(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  }
  CHECK(CheckHealth(port->address(), "", kLimit).ok());
  // More open files would not help.
  CHECK_THAT(
      log.text(),
      Catch::Contains("If the job needs more connections, probe the health port less often"));
  // In this process both ends are files: those of the crowd, and the few that the port keeps.
  const std::filesystem::directory_iterator files("/proc/self/fd");
  CHECK(std::distance(begin(files), end(files)) < 300 + 64 + 60);
}

TEST_CASE("a port that is taken is named, and nobody answers at one that is closed") {
  auto port = Port();
  const std::string address = port->address();
  const auto second = HealthPort::Start(address);
  REQUIRE(absl::IsUnavailable(second.status()));
  CHECK_THAT(std::string(second.status().message()), Catch::Contains("--health"));
  port.reset();
  const absl::Status nobody = CheckHealth(address, "", std::chrono::seconds(1));
  CHECK(absl::IsUnavailable(nobody));
  CHECK_THAT(std::string(nobody.message()), Catch::Contains(address));
}

}  // namespace
}  // namespace leeway::health_port
