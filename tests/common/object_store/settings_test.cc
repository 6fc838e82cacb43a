#include "common/object_store/settings.h"

#include <iterator>
#include <map>
#include <utility>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::settings {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<StoreSettings> Find(const Variables& variables) {
  return FindStoreSettings([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

// Returns the credentials; empty if a service gives them.
Credentials KeptIn(const Variables& variables) {
  const auto found = Find(variables);
  REQUIRE(found.ok());
  const auto* kept = std::get_if<Credentials>(&found->credentials);
  return kept != nullptr ? *kept : Credentials();
}

struct Home {
  Home() {
    REQUIRE(MakeFolders(folder / ".aws").ok());
    REQUIRE(
        WriteFileAtomically(
            folder / ".aws/credentials",
            "# comment\n[default]\naws_access_key_id = one\naws_secret_access_key=s1\n"
            "[ other ]\naws_access_key_id=two\naws_secret_access_key = s2 \naws_session_token=t2\n"
            "[half]\naws_access_key_id=three\n")
            .ok());
    REQUIRE(
        WriteFileAtomically(folder / ".aws/config",
                            "[default]\nregion=eu-west-1\n[profile other]\nregion = eu-north-1\n")
            .ok());
  }
  TempFolder folder;
};

TEST_CASE("credentials of the environment come first, then those of the profile") {
  const Home home;
  const Variables base = {{"HOME", home.folder.path()}};
  CHECK(KeptIn(base) == Credentials{"one", "s1", ""});
  CHECK(Find(base)->region == "eu-west-1");
  Variables other = base;
  other["AWS_PROFILE"] = "other";
  CHECK(KeptIn(other) == Credentials{"two", "s2", "t2"});
  CHECK(Find(other)->region == "eu-north-1");
  other["AWS_ACCESS_KEY_ID"] = "four";
  CHECK(KeptIn(other).access_key_id == "two");
  other["AWS_SECRET_ACCESS_KEY"] = "s4";
  CHECK(KeptIn(other) == Credentials{"four", "s4", ""});
  other["AWS_SESSION_TOKEN"] = "t4";
  CHECK(KeptIn(other).session_token == "t4");
  other["AWS_REGION"] = "us-west-2";
  CHECK(Find(other)->region == "us-west-2");
}

TEST_CASE("places are looked at in the order of AWS's own clients") {
  const Home home;
  // The sources in the order in which they are tried.
  const std::pair<Variables, size_t> places[] = {
      {{{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "b"}}, 0},
      {{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, {"AWS_ROLE_ARN", "arn"}}, 1},
      {{{"HOME", home.folder.path()}}, 0},
      {{{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/x"}}, 2}};
  Variables all;
  for (size_t i = std::size(places); i-- > 0;) {
    const auto& [variables, kind] = places[i];
    all.insert(variables.begin(), variables.end());
    CAPTURE(i);
    CHECK(Find(all)->credentials.index() == kind);
  }
  CHECK(KeptIn(all).access_key_id == "a");
}

TEST_CASE("without credentials the error names what was looked at, and no secret") {
  const Home home;
  for (const char* profile : {"half", "none"}) {
    const auto found = Find({{"HOME", home.folder.path()}, {"AWS_PROFILE", profile}});
    CHECK(absl::IsInvalidArgument(found.status()));
    CHECK_THAT(std::string(found.status().message()),
               Catch::Contains("AWS_ACCESS_KEY_ID") && Catch::Contains(profile) &&
                   Catch::Contains("credentials") && !Catch::Contains("three"));
  }
}

TEST_CASE("values that are none are refused") {
  const Variables keys = {{"AWS_ACCESS_KEY_ID", "a"}, {"AWS_SECRET_ACCESS_KEY", "b"}};
  const StoreSettings found = *Find(keys);
  CHECK(found.region == "us-east-1");
  CHECK(found.part_bytes == 8 << 20);
  CHECK(found.retry_total == Duration(std::chrono::seconds(60)));
  for (const auto& [name, value] : Variables{{"AWS_REGION", "a/b"},
                                             {"LEEWAY_S3_PART_BYTES", "10"},
                                             {"LEEWAY_S3_RETRY_SECONDS", "x"},
                                             {"LEEWAY_S3_STALL_SECONDS", "0"}}) {
    Variables with = keys;
    with[name] = value;
    CAPTURE(name);
    CHECK_THAT(std::string(Find(with).status().message()), Catch::Contains(name));
  }
}

}  // namespace
}  // namespace leeway::settings
