#include "launcher/hosts/remote_messages.h"

#include <set>

#include "tests/catch.h"

namespace leeway::remote_messages {
namespace {

std::string WithoutEnd(std::string line) {
  REQUIRE(line.ends_with("\n"));
  line.pop_back();
  REQUIRE(line.find('\n') == std::string::npos);
  return line;
}

RemoteNews Travelled(const RemoteNews& news) {
  const auto parsed = ParseNews(WithoutEnd(NewsLine(news)));
  REQUIRE(parsed.ok());
  REQUIRE(parsed->has_value());
  return **parsed;
}

}  // namespace

TEST_CASE("A request arrives as it was sent, with files of several lines") {
  RemoteRequest request;
  request.version = "1.2.3";
  request.program = "leeway-worker";
  request.name = "worker 1";
  request.arguments = {"--rank", "1", "--data", "/a folder/\"data\""};
  request.environment = {{"LEEWAY_TOKEN", "a token"}, {"LEEWAY_TLS", ""}};
  request.keys = {{"ca.crt", "-----BEGIN\nCERTIFICATE\n"}};
  request.folder = "/home/me";
  request.shared_file = "/run/hosts";
  request.shared_content = "run 1\na: server 0\n";
  request.file_mask = 077;
  request.announces_ready = true;
  const auto got = ParseRequest(WithoutEnd(RequestLine(request)));
  REQUIRE(got.ok());
  CHECK(got->version == request.version);
  CHECK(got->program == request.program);
  CHECK(got->name == request.name);
  CHECK(got->arguments == request.arguments);
  CHECK(std::set(got->environment.begin(), got->environment.end()) ==
        std::set(request.environment.begin(), request.environment.end()));
  CHECK(got->keys == request.keys);
  CHECK(got->folder == request.folder);
  CHECK(got->shared_file == request.shared_file);
  CHECK(got->shared_content == request.shared_content);
  CHECK(got->file_mask == 077);
  CHECK(got->announces_ready);
}

TEST_CASE("News arrive as they were sent") {
  const RemoteNews hello =
      Travelled({.hello = RemoteHello{"1.2.3", "10.0.0.1", {"/usr/bin/leeway-server"}}});
  REQUIRE(hello.hello.has_value());
  CHECK(hello.hello->version == "1.2.3");
  CHECK(hello.hello->address == "10.0.0.1");
  CHECK(hello.hello->missing_programs == std::vector<std::string>{"/usr/bin/leeway-server"});
  CHECK(Travelled({.pid = 4711}).pid == 4711);
  CHECK(Travelled({.ready = "10.0.0.1:7000"}).ready == "10.0.0.1:7000");
  CHECK(Travelled({.exit = ExitStatus{.code = 3}}).exit->ToString() == "exit code 3");
  CHECK(Travelled({.exit = ExitStatus{true, 9}}).exit->ToString() == "signal 9 (Killed)");
  CHECK(ParseSignal(WithoutEnd(SignalLine(15))).value() == 15);
}

TEST_CASE("What others write is passed over, and what is no message is refused") {
  const auto greeting = ParseNews("Welcome to b.");
  REQUIRE(greeting.ok());
  CHECK_FALSE(greeting->has_value());
  // A line of a shell that has no end.
  CHECK((*ParseNews("$ " + WithoutEnd(NewsLine({.pid = 4711}))))->pid == 4711);
  for (const char* line : {"", "[]", "{", "7", "{\"pid\": "}) {
    CAPTURE(line);
    CHECK(absl::IsInvalidArgument(ParseNews(std::string("leeway-remote ") + line).status()));
    CHECK(absl::IsInvalidArgument(ParseRequest(line).status()));
    CHECK(absl::IsInvalidArgument(ParseSignal(line).status()));
  }
  // A field of the wrong type.
  const auto odd =
      ParseNews("leeway-remote {\"pid\": \"x\", \"hello\": 7, \"ready\": [], \"exit\": {}}");
  REQUIRE(odd.ok());
  CHECK_FALSE((*odd)->pid.has_value());
  CHECK_FALSE((*odd)->hello.has_value());
  CHECK_FALSE((*odd)->exit.has_value());
  CHECK(
      ParseRequest("{\"arguments\": {\"a\": 1}, \"environment\": [1], \"file_mask\": \"x\"}").ok());
  CHECK_FALSE(ParseSignal("{\"signal\": 65}").ok());
  CHECK_FALSE(ParseSignal("{\"signal\": 0}").ok());
}

TEST_CASE("Lines are cut as they come") {
  LineBuffer lines;
  lines.Append("one\ntw", 6);
  CHECK(lines.Next() == "one");
  CHECK_FALSE(lines.Next().has_value());
  lines.Append("o\n\n", 3);
  CHECK(lines.Next() == "two");
  CHECK(lines.Next() == "");
  CHECK_FALSE(lines.overflows());
  const std::string endless(kRemoteLineMax + 1, 'x');
  lines.Append(endless.data(), endless.size());
  CHECK(lines.overflows());
}

}  // namespace leeway::remote_messages
