#include "common/object_store/temporary_credentials.h"

#include <latch>
#include <thread>
#include <vector>

#include "common/files/files.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::temporary_credentials {
namespace {

// A service that gives new credentials each time, which are valid for `life`; and a clock.
struct Service {
  explicit Service(std::string token_file = "") {
    source = std::make_unique<TemporaryCredentials>(TemporaryCredentialsOptions{
        .ask = [this](const std::string& token) -> absl::StatusOr<ExpiringCredentials> {
          tokens.push_back(token);
          if (!failure.ok()) return failure;
          return ExpiringCredentials{{absl::StrCat("key", tokens.size()), "secret", "session"},
                                     now + life};
        },
        .token_file = std::move(token_file),
        .what = "credentials of nobody",
        .now = [this] { return now; }});
  }
  // Returns the key; "" without credentials.
  std::string Key() const {
    const auto got = source->Get();
    return got.ok() ? got->access_key_id : "";
  }

  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  absl::Duration life = absl::Hours(1);
  absl::Status failure;
  // The token of each request.
  std::vector<std::string> tokens;
  std::unique_ptr<TemporaryCredentials> source;
};

void Write(const std::string& path, const std::string& text) {
  REQUIRE(WriteFileAtomically(path, text).ok());
}

TEST_CASE("temporary credentials are asked for once, and again five minutes before they expire") {
  Service service;
  CHECK(service.tokens.empty());
  CHECK(service.Key() == "key1");
  service.now += absl::Minutes(54);
  CHECK(service.Key() == "key1");
  service.now += absl::Minutes(1);
  CHECK(service.Key() == "key2");
  CHECK(service.Key() == "key2");
  CHECK(service.tokens.size() == 2);
}

TEST_CASE("short lives are renewed when a quarter of them is left") {
  Service service;
  service.life = absl::Seconds(8);
  CHECK(service.Key() == "key1");
  service.now += absl::Seconds(5);
  CHECK(service.Key() == "key1");
  service.now += absl::Seconds(1);
  CHECK(service.Key() == "key2");
}

TEST_CASE("the token file is read for each request, and asked with when it has changed") {
  const TempFolder folder;
  const std::string path = folder / "token";
  Write(path, "first\n");
  Service service(path);
  CHECK(service.Key() == "key1");
  Write(path, "second");
  CHECK(service.Key() == "key2");
  CHECK(service.Key() == "key2");
  service.now += absl::Hours(1);
  CHECK(service.Key() == "key3");
  CHECK(service.tokens == std::vector<std::string>{"first", "second", "second"});
}

TEST_CASE("a token file that is missing, empty or no token is an error that names it") {
  const TempFolder folder;
  const std::string path = folder / "token";
  Service service(path);
  for (const char* content : {"", " \n", "to\nken"}) {
    if (*content != 0) Write(path, content);
    const auto got = service.source->Get();
    CHECK(absl::IsFailedPrecondition(got.status()));
    CHECK_THAT(std::string(got.status().message()), Catch::Contains(path) &&
                                                        Catch::Contains("credentials of nobody") &&
                                                        Catch::Contains("mount the token"));
    service.now += absl::Seconds(2);
  }
  CHECK(service.tokens.empty());
  Write(path, "token");
  CHECK(service.Key() == "key1");
}

TEST_CASE("while the last credentials are valid, a failure is tried again later") {
  Service service;
  CHECK(service.Key() == "key1");
  service.failure = absl::UnavailableError("no answer");
  service.now += absl::Minutes(56);
  CHECK(service.Key() == "key1");
  service.now += absl::Seconds(29);
  CHECK(service.Key() == "key1");
  CHECK(service.tokens.size() == 2);
  service.now += absl::Seconds(1);
  CHECK(service.Key() == "key1");
  CHECK(service.tokens.size() == 3);
  service.now += absl::Minutes(4);
  CHECK(service.source->Get().status() == service.failure);
  service.failure = absl::OkStatus();
  service.now += absl::Seconds(2);
  CHECK(service.Key() == "key5");
}

TEST_CASE("a service that does not answer is asked once a second at most") {
  Service service;
  service.failure = absl::UnavailableError("no answer");
  CHECK(absl::IsUnavailable(service.source->Get().status()));
  CHECK(absl::IsUnavailable(service.source->Get().status()));
  CHECK(service.tokens.size() == 1);
  service.now += absl::Seconds(1);
  CHECK(absl::IsUnavailable(service.source->Get().status()));
  CHECK(service.tokens.size() == 2);
}

TEST_CASE("credentials that are expired when they come are not taken") {
  Service service;
  service.life = -absl::Seconds(1);
  const auto got = service.source->Get();
  CHECK(absl::IsFailedPrecondition(got.status()));
  CHECK_THAT(std::string(got.status().message()), Catch::Contains("clock"));
}

TEST_CASE("what the store has refused is replaced, by one request for all who were refused") {
  Service service;
  const Credentials refused = *service.source->Get();
  CHECK(service.source->Renew(refused));
  CHECK(service.source->Renew(refused));
  CHECK(service.Key() == "key2");
  CHECK(service.tokens.size() == 2);
  service.failure = absl::PermissionDeniedError("no more");
  CHECK(!service.source->Renew(*service.source->Get()));
}

TEST_CASE("others go on with valid credentials while one caller asks, and wait without") {
  std::latch asked(1), answer(1);
  absl::Time now = absl::FromUnixSeconds(1'700'000'000);
  const bool valid = GENERATE(true, false);
  int requests = 0;
  TemporaryCredentials source(
      {.ask = [&](const std::string&) -> absl::StatusOr<ExpiringCredentials> {
         ++requests;
         const absl::Time expires = now + absl::Hours(requests);
         if (valid && requests == 1) return ExpiringCredentials{{"old", "s", "t"}, expires};
         asked.count_down();
         answer.wait();
         return ExpiringCredentials{{"new", "s", "t"}, expires};
       },
       .now = [&] { return now; }});
  if (valid) {
    CHECK(source.Get()->access_key_id == "old");
    now += absl::Minutes(56);
  }
  std::thread asking([&] { CHECK(source.Get()->access_key_id == "new"); });
  asked.wait();
  if (valid) {
    CHECK(source.Get()->access_key_id == "old");
    answer.count_down();
  } else {
    std::thread waiting([&] { CHECK(source.Get()->access_key_id == "new"); });
    answer.count_down();
    waiting.join();
  }
  asking.join();
  CHECK(requests == (valid ? 2 : 1));
}

}  // namespace
}  // namespace leeway::temporary_credentials
