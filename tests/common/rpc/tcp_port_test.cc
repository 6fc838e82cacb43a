// A gRPC server whose connections are accepted here: it serves as at a port of its own, and knows
// peers by the same names.
#include "common/rpc/tcp_port.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/descriptor.h"
#include "common/rpc/channel.h"
#include "common/rpc/handed_connections.h"
#include "leeway/v1/parameter_server.grpc.pb.h"
#include "tests/catch.h"
#include "tests/skip.h"
#include "tests/sockets.h"

namespace leeway::tcp_port {
namespace {

// Answers Attach, and records the callers.
class Service final : public v1::ParameterServer::Service {
 public:
  explicit Service(ConnectionTable* table) : table_(table) {}
  grpc::Status Attach(grpc::ServerContext* context, const v1::AttachRequest* /*request*/,
                      v1::AttachReply* /*reply*/) override {
    peer = context->peer();
    table_->LetIn(peer);
    return grpc::Status::OK;
  }
  std::string peer;

 private:
  ConnectionTable* const table_;
};

struct Rig {
  explicit Rig(const std::string& address = "127.0.0.1:0",
               ConnectionTable::Limits limits = {.most = 100})
      : table(limits, TcpSockets()) {
    auto listening = TcpPort::Listen(address);
    REQUIRE(listening.ok());
    port = *std::move(listening);
    grpc::ServerBuilder builder;
    gate = PrepareForConnections({.address = address}, builder);
    builder.RegisterService(&service);
    server = builder.BuildAndStart();
    REQUIRE(port->Start(gate.get(), &table).ok());
  }
  ~Rig() {
    port.reset();
    server->Shutdown(std::chrono::system_clock::now());
  }

  ConnectionTable table;
  Service service{&table};
  std::unique_ptr<TcpPort> port;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> gate;
  std::unique_ptr<grpc::Server> server;
};

grpc::Status Attach(v1::ParameterServer::Stub& stub) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  context.set_wait_for_ready(true);
  v1::AttachReply reply;
  return stub.Attach(&context, {}, &reply);
}

std::unique_ptr<v1::ParameterServer::Stub> Connect(const std::string& host, int port) {
  return v1::ParameterServer::NewStub(MakeChannel(absl::StrCat(host, ":", port)));
}

// Returns a connection; below 0 if that is impossible.
Descriptor Stranger(int port) {
  Descriptor end(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(*end, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return end;
  return Descriptor(-1);
}

// Waits until the other end has closed enough of these connections. Returns how many it has closed.
size_t Closed(const std::vector<Descriptor>& connections, size_t enough) {
  std::vector<pollfd> open;
  for (const Descriptor& each : connections) open.push_back({*each, POLLIN, 0});
  size_t closed = 0;
  while (closed < enough && poll(open.data(), open.size(), 20'000) > 0) {
    for (pollfd& file : open) {
      char byte;
      if (file.revents == 0 || recv(file.fd, &byte, 1, 0) > 0) continue;
      file.fd = -1;
      ++closed;
    }
  }
  return std::min(closed, enough);
}

// Waits until the other end closes the connection.
bool IsClosed(int socket) {
  char byte;
  ssize_t got = 1;
  while (got > 0) {
    pollfd file{socket, POLLIN, 0};
    if (poll(&file, 1, 20'000) != 1) return false;
    got = recv(socket, &byte, 1, 0);
  }
  return true;
}

}  // namespace

TEST_CASE("A server is called at each kind of address, by peers that the table knows") {
  for (const auto& [listen, call, name] :
       {std::tuple("127.0.0.1:0", "127.0.0.1", "ipv4:127.0.0.1:"),
        std::tuple("0.0.0.0:0", "127.0.0.1", "ipv4:127.0.0.1:"),
        std::tuple("localhost:0", "127.0.0.1", "ipv4:127.0.0.1:"),
        std::tuple("[::1]:0", "[::1]", "ipv6:%5B::1%5D:"),
        std::tuple("0.0.0.0:0", "[::1]", "ipv6:%5B::1%5D:")}) {
    if (std::string(call) == "[::1]" && !TcpPort::Listen("[::1]:0").ok()) continue;
    INFO(listen << " " << call);
    Rig rig(listen, {.most = 1});
    const auto stub = Connect(call, rig.port->port());
    CHECK(Attach(*stub).ok());
    CHECK_THAT(rig.service.peer, Catch::StartsWith(name));
    // Under that name it was admitted: the only place is taken.
    if (std::string(call) != "127.0.0.1") continue;
    const Descriptor stranger = Stranger(rig.port->port());
    CHECK(IsClosed(*stranger));
    CHECK(Attach(*stub).ok());
    CHECK(rig.table.turned_away() == 1);
  }
}

TEST_CASE("In a crowd of strangers those that were let in are undisturbed, and others come in") {
  Rig rig("127.0.0.1:0", {.most = 8});
  const auto first = Connect("127.0.0.1", rig.port->port());
  REQUIRE(Attach(*first).ok());
  const std::string peer = rig.service.peer;
  std::vector<Descriptor> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(Stranger(rig.port->port()));
  // The server sends a handshake's bytes to each connection that is still there, at most seven. The
  // others waited for their turn until they had to make room.
  CHECK(Closed(crowd, 193) == 193);
  const auto second = Connect("127.0.0.1", rig.port->port());
  CHECK(Attach(*second).ok());
  CHECK(Attach(*first).ok());
  CHECK(rig.service.peer == peer);
  CHECK(rig.table.turned_away() + rig.table.of_crowds() >= 193);
}

// HTTP/2 frames: a header block that does not end. Its one header has the greatest length that a
// header can declare.
std::string EndlessHeader(size_t bytes) {
  const auto frame = [](char kind, char flags, char stream, const std::string& payload) {
    const size_t size = payload.size();
    std::string head = {static_cast<char>(size >> 16),
                        static_cast<char>(size >> 8),
                        static_cast<char>(size),
                        kind,
                        flags,
                        0,
                        0,
                        0,
                        stream};
    return head + payload;
  };
  std::string text = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "");
  // A literal "a" with a value of 2 GiB.
  text += frame(1, 0, 1, std::string("\0\1a\x7f\x80\xff\xff\xff\x07", 9));
  while (text.size() < bytes) text += frame(9, 0, 1, std::string(16384, 'x'));
  return text;
}

TEST_CASE("A stranger's header that does not end is cut off, and others are served meanwhile") {
  Rig rig("127.0.0.1:0", {.most = 100, .stranger_bytes = 1 << 20});
  const auto peer = Connect("127.0.0.1", rig.port->port());
  REQUIRE(Attach(*peer).ok());
  const std::string header = EndlessHeader(64 << 20);
  const Descriptor stranger = Stranger(rig.port->port());
  size_t sent = 0;
  for (ssize_t took = 0; sent < header.size() && took >= 0; sent += static_cast<size_t>(took)) {
    took = send(*stranger, header.data() + sent, std::min<size_t>(header.size() - sent, 1 << 18),
                MSG_NOSIGNAL);
    if (took < 0) break;
  }
  CHECK(sent < header.size());
  CHECK(Attach(*peer).ok());
  CHECK(rig.table.talkers() == 1);
}

TEST_CASE("A port that is taken is named, and errors are for now") {
  Rig rig;
  const auto taken = TcpPort::Listen(absl::StrCat("127.0.0.1:", rig.port->port()));
  CHECK(absl::IsUnavailable(taken.status()));
  CHECK_THAT(std::string(taken.status().message()), Catch::Contains("is the port taken"));
  CHECK(absl::IsUnavailable(TcpPort::Listen("no-such-name.invalid:7000").status()));
}

TEST_CASE("Where no file was left for a connection, the next ones are accepted all the same") {
  Rig rig;
  const auto stub = Connect("127.0.0.1", rig.port->port());
  REQUIRE(Attach(*stub).ok());
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  {
    // First a socket to connect with; then the process has no file descriptor left.
    Descriptor late(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(*late) + 1;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(rig.port->port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(*late, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    CHECK(Attach(*stub).ok());
    REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  }
  CHECK(Attach(*Connect("127.0.0.1", rig.port->port())).ok());
}

}  // namespace leeway::tcp_port
