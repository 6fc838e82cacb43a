#include "server/coordinator/server_table.h"

#include "tests/catch.h"

namespace leeway {
namespace {

v1::RegisterServerRequest Process(uint64_t nonce) {
  v1::RegisterServerRequest request;
  request.set_index(0);
  request.set_address("server0:1");
  request.set_nonce(nonce);
  return request;
}

TEST_CASE("a process that was replaced is past once the one after it has been heard") {
  ServerTable table(1, 1, std::chrono::seconds(10));
  table.Register(Process(1), Time());
  table.Register(Process(2), Time());
  CHECK_FALSE(table.Past(Process(1)));
  table.Confirm(0);
  CHECK(table.Past(Process(1)));
  CHECK_FALSE(table.Past(Process(2)));
  CHECK_FALSE(table.Past(Process(3)));
}

TEST_CASE("a process that takes its index back is not past, and who had it meanwhile is") {
  ServerTable table(1, 1, std::chrono::seconds(10));
  table.Register(Process(1), Time());
  table.Register(Process(2), Time());
  table.Register(Process(1), Time());
  table.Confirm(0);
  CHECK_FALSE(table.Past(Process(1)));
  CHECK(table.Past(Process(2)));
}

}  // namespace
}  // namespace leeway
