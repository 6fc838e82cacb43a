#include "common/service/connection_guard.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

using Json = nlohmann::json;

constexpr Duration kLookAtConnectionsEvery = std::chrono::milliseconds(20);
// The guard checks a server's connections after kCallsBetween further calls, plus
// kCallsEachConnection for each connection. So a check costs much less than the calls.
constexpr uint64_t kCallsBetween = 2000;
constexpr uint64_t kCallsEachConnection = 16;
constexpr int kSocketsMost = 100'000;

// Parses what gRPC reports about itself (channelz.proto, as JSON), and frees the string. Returns an
// empty object if there is no report.
Json Take(char* text) {
  if (text == nullptr) return Json::object();
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  gpr_free(text);
  return json.is_object() ? json : Json::object();
}

// Returns a field of the object, or null if the field is missing.
Json Field(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? Json() : *found;
}

// Returns a number in the object. In this JSON 64-bit numbers are strings, and a number that is 0
// is absent.
uint64_t Number(const Json& json, const char* name) {
  uint64_t number = 0;
  const Json field = Field(json, name);
  if (field.is_string()) return absl::SimpleAtoi(field.get<std::string>(), &number) ? number : 0;
  return field.is_number() ? field.get<uint64_t>() : 0;
}

// Returns the bytes of the address and the port of one end, or an empty string if the socket is not
// a TCP connection.
std::string EndIn(const Json& socket, const char* which) {
  const Json end = Field(Field(socket, which), "tcpip_address");
  const Json address = Field(end, "ip_address");
  std::string bytes;
  if (!address.is_string() || !absl::Base64Unescape(address.get<std::string>(), &bytes)) return "";
  return absl::StrCat(bytes, ":", Number(end, "port"));
}

// Returns the peer of a socket as gRPC names it. The socket's own name is "chttp2
// ipv4:10.0.0.1:4711".
std::string PeerIn(const Json& socket) {
  const Json name = Field(Field(socket, "ref"), "name");
  const std::string text = name.is_string() ? name.get<std::string>() : "";
  return text.substr(text.rfind(' ') + 1);
}

using NameOfEnd = int (*)(int, sockaddr*, socklen_t*);
std::string AddressOfEnd(int socket, NameOfEnd name_of_end) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (name_of_end(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&v4.sin_addr), 4), ":",
                        ntohs(v4.sin_port));
  }
  if (address.ss_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  // gRPC uses the IPv4 address for an IPv4 peer of an IPv6 socket.
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
  const char* bytes = reinterpret_cast<const char*>(&v6.sin6_addr) + (mapped ? 12 : 0);
  return absl::StrCat(absl::string_view(bytes, mapped ? 4 : 16), ":", ntohs(v6.sin6_port));
}

// Ends the connection with these two ends, of which there is at most one. Returns false if there is
// no such connection.
bool EndConnection(const std::string& here, const std::string& there) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    int file = -1;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &file)) continue;
    if (AddressOfEnd(file, getpeername) != there || AddressOfEnd(file, getsockname) != here)
      continue;
    return shutdown(file, SHUT_RDWR) == 0;
  }
  return false;
}

}  // namespace

ConnectionGuard::ConnectionGuard(std::function<Time()> now, ConnectionTable* strangers)
    : now_(std::move(now)), strangers_(strangers), thread_([this] { Loop(); }) {}

ConnectionGuard::~ConnectionGuard() {
  {
    MutexLock lock(mutex_);
    over_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

bool ConnectionGuard::IsOverAfter(Duration pause) {
  const Time until = std::chrono::steady_clock::now() + pause;
  MutexLock lock(mutex_);
  while (!over_ && changed_.WaitUntil(mutex_, until)) {
  }
  return over_;
}

void ConnectionGuard::Loop() {
  while (!IsOverAfter(kLookAtConnectionsEvery)) {
    for (const Json& server : Field(Take(grpc_channelz_get_servers(0)), "server")) {
      const auto id = static_cast<int64_t>(Number(Field(server, "ref"), "serverId"));
      const uint64_t calls = Number(Field(server, "data"), "callsStarted");
      Seen& seen = seen_[id];
      if (calls - seen.calls < kCallsBetween + kCallsEachConnection * seen.debts.size()) continue;
      seen.calls = calls;
      LookAtServer(id, seen.debts);
    }
  }
}

void ConnectionGuard::LookAtServer(int64_t server, std::map<int64_t, CallDebt>& debts) {
  const Time now = now_();
  std::map<int64_t, CallDebt> here;
  const Json sockets = Take(grpc_channelz_get_server_sockets(server, 0, kSocketsMost));
  for (const Json& ref : Field(sockets, "socketRef")) {
    const auto socket = static_cast<int64_t>(Number(ref, "socketId"));
    const auto known = debts.find(socket);
    CallDebt debt = known == debts.end() ? CallDebt(now) : known->second;
    LookAtSocket(socket, debt, now);
    here.emplace(socket, debt);
  }
  debts = std::move(here);
}

void ConnectionGuard::LookAtSocket(int64_t socket, CallDebt& debt, Time now) {
  const Json json = Field(Take(grpc_channelz_get_socket(socket)), "socket");
  const Json data = Field(json, "data");
  const uint64_t started = Number(data, "streamsStarted");
  const uint64_t owed = debt.Owed(started, Number(data, "streamsSucceeded"), now);
  if (owed > CallDebt::kStrangerMax && strangers_ != nullptr &&
      strangers_->EndStranger(PeerIn(json), now)) {
    ++ended_;
    return;
  }
  if (owed <= CallDebt::kMax) return;
  const std::string here = EndIn(json, "local"), there = EndIn(json, "remote");
  if (here.empty() || there.empty() || !EndConnection(here, there)) return;
  ++ended_;
  spdlog::warn("ended a connection ({}) that has begun {} calls and cancelled nearly all of them",
               Field(Field(json, "ref"), "name").dump(), started);
}

}  // namespace leeway
