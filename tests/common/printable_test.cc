#include "common/printable.h"

#include "common/server_address.h"
#include "leeway/v1/coordinator.pb.h"
#include "tests/catch.h"

namespace leeway::printable {
namespace {

TEST_CASE("text of others does nothing to a terminal") {
  CHECK(Printable("plain, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80") ==
        "plain, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(Printable("a\x1b[2Jb\r\n\tc\x07") == "a\\x1b[2Jb\\x0d\\n\\tc\\x07");
  // CSI as one character, a mark that reverses the text's direction, and DEL.
  CHECK(Printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");
  CHECK(Printable("\xe2\x80\xae"
                  "x\x7f") == "\\xe2\\x80\\xaex\\x7f");
  // Not UTF-8: cut off, overlong, a surrogate, and beyond the last character.
  CHECK(Printable("\xe2\x82") == "\\xe2\\x82");
  CHECK(Printable("\xc0\x80") == "\\xc0\\x80");
  CHECK(Printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  CHECK(Printable("\xf5\x80\x80\x80") == "\\xf5\\x80\\x80\\x80");
  CHECK(Printable(absl::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("every byte and every pair of bytes becomes UTF-8 without control characters") {
  for (int i = 0; i < 65536; ++i) {
    const std::string text = {static_cast<char>(i >> 8), static_cast<char>(i & 0xff)};
    const std::string printable = Printable(text);
    CHECK(Printable(printable) == printable);
    for (const char byte : printable) {
      if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f) FAIL(i);
    }
  }
}

TEST_CASE("long text is cut between characters, and stays as it was cut") {
  const std::string cut = Printable(std::string(60'000'000, 'x'));
  CHECK(cut.size() == kTextBytesMax + 3);
  CHECK(Printable(cut) == cut);
  CHECK(Printable("abc\xe2\x82\xac", 4) == "abc...");
  CHECK(Printable("abc", 3) == "abc");
}

TEST_CASE("names and addresses that do not look like any are refused, and not echoed whole") {
  CHECK(CheckPrintable("host", "node-7.example").ok());
  const absl::Status longer = CheckPrintable("host", std::string(1'000'000, 'x'));
  CHECK(absl::IsInvalidArgument(longer));
  CHECK(longer.message().size() < 200);
  CHECK_FALSE(CheckPrintable("host", "a\x1b[2J").ok());
  CHECK(CheckServerAddress("address", "[::1]:7000").ok());
  CHECK(CheckServerAddress("address", "node:1").ok());
  for (const char* bad :
       {"", "node", "node:", "node:0", "node:70000", ":1", "a b:1", "../x:1", "a:\x1b"}) {
    INFO(bad);
    CHECK_FALSE(CheckServerAddress("address", bad).ok());
  }
  CHECK(CheckLocalAddress("local_address", "unix-abstract:leeway-1").ok());
  CHECK_FALSE(CheckLocalAddress("local_address", "unix:/tmp/x").ok());
  CHECK_FALSE(CheckLocalAddress("local_address", "unix-abstract:").ok());
}

TEST_CASE("every text of a message is made printable, however deep it lies") {
  v1::JobStatus status;
  status.set_name("\x1b[2J");
  status.add_workers()->set_waiting("\x1b]0;x\x07");
  status.add_servers()->set_address("\r");
  MakePrintable(status);
  CHECK(status.name() == "\\x1b[2J");
  CHECK(status.workers(0).waiting() == "\\x1b]0;x\\x07");
  CHECK(status.servers(0).address() == "\\x0d");
}

}  // namespace
}  // namespace leeway::printable
