#include "common/security/kept_token.h"

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/log_capture.h"
#include "tests/temp_folder.h"

namespace leeway::kept_token {
namespace {

constexpr char kOld[] = "0123456789abcdef-old";
constexpr char kNew[] = "0123456789abcdef-new";

std::string Bearer(const char* token) { return std::string("Bearer ") + token; }

// A file of tokens that is only checked when the test asks for it.
struct Kept {
  explicit Kept(const std::string& text) { Write(text); }
  void Write(const std::string& text) const {
    REQUIRE(WriteFileAtomically(folder / "token", text).ok());
  }
  absl::StatusOr<KeptToken> Keep() const {
    return KeptToken::Keep(folder / "token", std::chrono::hours(1));
  }

  TempFolder folder;
};

TEST_CASE("tokens: none matches nothing, and one that is given stays") {
  const KeptToken none, empty((Token()));
  CHECK(none.empty());
  CHECK(empty.empty());
  CHECK(none.Authorization().empty());
  CHECK_FALSE(none.Matches(""));
  CHECK_FALSE(none.Matches("Bearer "));
  const KeptToken given(Token::Parse(kOld, "test").value());
  given.Look();
  CHECK(given.Matches(Bearer(kOld)));
  CHECK(given.text() == kOld);
}

TEST_CASE("tokens: the first line is sent, and each of two is accepted") {
  const Kept file(std::string(" ") + kOld + "\n\n" + kNew + " \n");
  const KeptToken kept = file.Keep().value();
  CHECK(kept.text() == kOld);
  CHECK(kept.Matches(Bearer(kOld)));
  CHECK(kept.Matches(Bearer(kNew)));
  file.Write(std::string(kNew) + "\n" + kOld);
  const KeptToken copy = kept;
  kept.Look();
  CHECK(copy.Authorization() == Bearer(kNew));
  CHECK(copy.Matches(Bearer(kOld)));
  file.Write(kNew);
  kept.Look();
  CHECK_FALSE(copy.Matches(Bearer(kOld)));
}

TEST_CASE("tokens: a file that is wrong is refused at the start, and told once later") {
  for (const std::string& text : {std::string(), std::string("short"), std::string("\n\n"),
                                  std::string(kOld) + "\n" + kNew + "\n" + kOld + "x"}) {
    INFO(text);
    CHECK(absl::IsInvalidArgument(Kept(text).Keep().status()));
  }
  const Kept file(kOld);
  const KeptToken kept = file.Keep().value();
  const testing::LogCapture log;
  file.Write("short");
  kept.Look();
  CHECK(log.text().empty());
  for (int look = 0; look < 3; ++look) kept.Look();
  CHECK_THAT(log.text(), Catch::Contains("a token has 16 to 4096 visible ASCII characters"));
  CHECK(log.text().find("continues with") == log.text().rfind("continues with"));
  CHECK(kept.Matches(Bearer(kOld)));
  file.Write(kNew);
  kept.Look();
  CHECK_THAT(log.text(), Catch::Contains("1 token, in use from now on"));
  CHECK_FALSE(log.text().find(kNew) != std::string::npos);
}

}  // namespace
}  // namespace leeway::kept_token
