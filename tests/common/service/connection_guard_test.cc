// Connections that only begin calls are ended; connections that let calls end are not.
#include "common/service/connection_guard.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/rpc/channel.h"
#include "common/service/admitted_service.h"
#include "common/service/unary_call.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/catch.h"
#include "tests/log_capture.h"

namespace leeway::connection_guard {
namespace {

// A server that answers Attach at once.
struct Rig {
  Rig() {
    grpc::ServerBuilder builder;
    PrepareServer({.address = "127.0.0.1:0"}, builder, &port);
    builder.RegisterService(&service);
    queue = std::make_unique<ServerQueue>(builder);
    server = builder.BuildAndStart();
    ServeUnary<v1::AttachRequest, v1::AttachReply>(
        queue.get(), &service, "leeway.v1.ParameterServer.Attach",
        [](const v1::AttachRequest&, auto done) { done(v1::AttachReply()); });
    queue->Start();
  }
  ~Rig() {
    server->Shutdown(std::chrono::system_clock::now());
    queue.reset();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port); }

  int port = 0;
  AdmittedService<v1::ParameterServer::WithRawMethod_Exchange<v1::ParameterServer::Service>>
      service{"leeway.v1.ParameterServer"};
  std::unique_ptr<ServerQueue> queue;
  std::unique_ptr<grpc::Server> server;
};

grpc::Status Attach(v1::ParameterServer::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  v1::AttachReply reply;
  return stub.Attach(&context, {}, &reply);
}

std::string Frame(char kind, char flags, uint32_t stream, const std::string& payload) {
  const uint32_t size = htonl(static_cast<uint32_t>(payload.size()) << 8);
  const uint32_t number = htonl(stream);
  std::string frame(reinterpret_cast<const char*>(&size), 3);
  frame += kind;
  frame += flags;
  frame.append(reinterpret_cast<const char*>(&number), 4);
  return frame + payload;
}

std::string Literal(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}

// Begins calls, and breaks each one off if `resets`. Returns after how many calls its connection
// was ended; 0: it was not ended. `connected` is given its socket.
uint32_t Flood(
    int port, uint32_t calls, bool resets, const std::function<void(int)>& connected = [](int) {}) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  REQUIRE(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  connected(socket);
  const std::string head = Literal(":method", "POST") + Literal(":scheme", "http") +
                           Literal(":path", "/leeway.v1.ParameterServer/Attach") +
                           Literal(":authority", "x") + Literal("te", "trailers") +
                           Literal("content-type", "application/grpc");
  std::string out = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(4, 0, 0, "");
  uint32_t sent = 0;
  for (; sent < calls; ++sent) {
    out += Frame(1, 4, 2 * sent + 1, head);
    if (resets) out += Frame(3, 0, 2 * sent + 1, std::string("\0\0\0\x08", 4));
    if (out.size() < 4096) continue;
    if (send(socket, out.data(), out.size(), MSG_NOSIGNAL) < 0) break;
    out.clear();
    // Reads what is there, without waiting for more.
    char said[4096];
    if (recv(socket, said, sizeof said, MSG_DONTWAIT) == 0) break;
  }
  close(socket);
  return sent < calls ? sent : 0;
}

TEST_CASE("a connection on which calls are only begun is ended, and others go on") {
  Rig rig;
  ConnectionGuard guard([] { return std::chrono::steady_clock::now(); });
  const auto stub = v1::ParameterServer::NewStub(MakeChannel(rig.address()));
  REQUIRE(Attach(*stub).ok());
  for (uint64_t attackers = 1; attackers <= 3; ++attackers) {
    // gRPC may end a connection itself, or it may end before the guard has counted it: then the
    // test makes another one.
    for (int floods = 0; floods < 10 && guard.ended() < attackers; ++floods) {
      CHECK(Flood(rig.port, 2'000'000, true) > 0);
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
      while (guard.ended() < attackers && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
      }
    }
    CHECK(guard.ended() == attackers);
  }
  CHECK(Attach(*stub).ok());
}

// The name that the server has for the peer of this socket.
std::string NameOf(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  REQUIRE(getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return "ipv4:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
}

TEST_CASE("a connection on which no call was let in may begin few") {
  const testing::LogCapture log;
  Rig rig;
  ConnectionTable table({.most = 10}, {.is_open = [](int, const std::string&) { return true; },
                                       .end = [](int socket) { shutdown(socket, SHUT_RDWR); },
                                       .traffic = [](int) { return ConnectionTable::Traffic(); }});
  ConnectionGuard guard([] { return std::chrono::steady_clock::now(); }, &table);
  for (int floods = 0; floods < 10 && table.talkers() == 0; ++floods) {
    Flood(rig.port, 2'000'000, true,
          [&](int socket) { table.Add(socket, NameOf(socket), Time()); });
  }
  CHECK(table.talkers() == 1);
  CHECK(guard.ended() >= 1);
}

TEST_CASE("of calls that stay there are so many on a connection and no more") {
  Rig rig;
  ConnectionGuard guard([] { return std::chrono::steady_clock::now(); });
  CHECK(Flood(rig.port, 2'000'000, false) > 0);
  const auto stub = v1::ParameterServer::NewStub(MakeChannel(rig.address()));
  CHECK(Attach(*stub).ok());
}

TEST_CASE("a connection on which calls end is left alone, however many") {
  Rig rig;
  ConnectionGuard guard([] { return std::chrono::steady_clock::now(); });
  const auto stub = v1::ParameterServer::NewStub(MakeChannel(rig.address()));
  for (uint64_t call = 0; call < CallDebt::kMax + 4000; ++call) REQUIRE(Attach(*stub).ok());
  CHECK(guard.ended() == 0);
}

TEST_CASE("calls that did not end are forgiven with time, and only so") {
  const Time begin;
  const uint64_t most = CallDebt::kMax;
  CallDebt debt(begin);
  CHECK(debt.Owed(most, 0, begin) == most);
  CHECK(debt.Owed(most + 1000, 1000, begin) == most);
  const Time later = begin + std::chrono::seconds(10);
  const auto forgiven = static_cast<uint64_t>(10 * CallDebt::kForgivenPerSecond);
  CHECK(debt.Owed(most + forgiven + 1, 0, later) == most + 1);
  // Calls in advance do not reduce a later debt.
  CallDebt idle(begin);
  CHECK(idle.Owed(10, 10, begin + std::chrono::hours(100)) == 0);
  CHECK(idle.Owed(most + 20, 10, begin + std::chrono::hours(100)) == most + 10);
}

}  // namespace
}  // namespace leeway::connection_guard
