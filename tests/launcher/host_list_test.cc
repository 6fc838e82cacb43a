#include "launcher/hosts/host_list.h"

#include "tests/catch.h"

namespace leeway::host_list {
namespace {

std::string Refusal(const std::string& text, uint32_t workers) {
  const auto hosts = ParseHosts(text, workers);
  CHECK(absl::IsInvalidArgument(hosts.status()));
  return std::string(hosts.status().message());
}

}  // namespace

TEST_CASE("Hosts have names, numbers of workers and, where they are said, addresses") {
  const auto hosts = ParseHosts("a:2,me@b=10.0.0.2:1,c,[fe80::1]:0,d=[fd00::2]:3", 7);
  INFO(hosts.status());
  REQUIRE(hosts.ok());
  REQUIRE(hosts->size() == 5);
  CHECK(((*hosts)[0].name == "a" && (*hosts)[0].workers == 2 && (*hosts)[0].address.empty()));
  CHECK(((*hosts)[1].name == "me@b" && (*hosts)[1].address == "10.0.0.2"));
  CHECK(((*hosts)[2].name == "c" && (*hosts)[2].workers == 1));
  CHECK(((*hosts)[3].name == "fe80::1" && (*hosts)[3].workers == 0));
  CHECK(((*hosts)[4].address == "fd00::2" && (*hosts)[4].workers == 3));
}

TEST_CASE("What is no list of hosts is refused, with what to write") {
  CHECK_THAT(Refusal("a:2,b:2", 3), Catch::Contains("have 4 workers, but the job has 3") &&
                                        Catch::Contains("--set workers.count=4"));
  CHECK_THAT(Refusal("a,b,a", 3), Catch::Contains("a is listed twice"));
  for (const char* wrong :
       {"", ":2", "a:", "a:-1", "a:x", "a:2.5", "a:99999999999", "-oProxyCommand=x:1", "a b:1",
        "a'b:1", "a=:1", "=10.0.0.1:1", "a:1,", "a:1,,b:1", "a\n:1"}) {
    CAPTURE(wrong);
    CHECK_THAT(Refusal(wrong, 1), Catch::Contains("--hosts"));
  }
}

TEST_CASE("Workers fill the hosts one after the other, and servers go over them in turn") {
  const auto hosts = ParseHosts("a:1,b:0,c:2", 3);
  REQUIRE(hosts.ok());
  CHECK(HostOfWorker(*hosts, 0) == 0);
  CHECK(HostOfWorker(*hosts, 1) == 2);
  CHECK(HostOfWorker(*hosts, 2) == 2);
  CHECK(HostOfServer(*hosts, 0) == 0);
  CHECK(HostOfServer(*hosts, 4) == 1);
  CHECK(ProcessesOf(*hosts, 0, 4) == "server 0, server 3, worker 0");
  CHECK(ProcessesOf(*hosts, 1, 4) == "server 1");
  CHECK(ProcessesOf(*hosts, 2, 4) == "server 2, worker 1, worker 2");
}

}  // namespace leeway::host_list
