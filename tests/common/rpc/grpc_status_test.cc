#include "common/rpc/grpc_status.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"

namespace leeway::grpc_status {
namespace {

// The message as gRPC 1.51 writes it.
std::string NotConnected(const std::string& cause) {
  return InPlainWords(absl::StrCat(
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:7901: ", cause));
}

}  // namespace

TEST_CASE("Who is reached and does not agree is told from nobody") {
  CHECK(NotConnected("Failed to connect to remote host: Connection refused") ==
        "no process answers there (Connection refused)");
  CHECK(NotConnected("Socket closed") ==
        "the process there hung up at once: it may require TLS, or other certificates (--tls-dir) "
        "(Socket closed)");
  CHECK_THAT(NotConnected("error:0A000086:SSL routines::certificate verify failed"),
             Catch::StartsWith("the certificate there is not valid now, or not signed"));
  CHECK_THAT(NotConnected("error:0A00010B:SSL routines::wrong version number"),
             Catch::StartsWith("the process there does not use TLS"));
  CHECK_THAT(NotConnected("error:0A000418:SSL routines::tlsv1 alert unknown ca"),
             Catch::StartsWith("the process there refuses this process's certificate"));
  CHECK(NotConnected("Custom verification check failed with error: UNAUTHENTICATED: the "
                     "certificate at this address is a status' and no server's") ==
        "the certificate at this address is a status' and no server's");
}

TEST_CASE("Other texts of gRPC's stay") {
  CHECK(InPlainWords("DNS resolution failed for nowhere:1: C-ares: Domain name not found") ==
        "the host name was not found (Domain name not found)");
  CHECK(InPlainWords("Broken pipe: x") == "Broken pipe: x");
}

}  // namespace leeway::grpc_status
