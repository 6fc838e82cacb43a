#include "common/security/settings.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/security/certificate_authority.h"
#include "tests/catch.h"
#include "tests/temp_folder.h"

namespace leeway::settings {
namespace {

// An authority, and a server's certificate that it has issued.
struct Files {
  Files() { CHECK(WriteCredentials(folder.path(), authority.own().certificate, issued).ok()); }
  std::string operator/(const char* name) const { return folder.path() + "/" + name; }

  TempFolder folder;
  CertificateAuthority authority = CertificateAuthority::Make(10).value();
  CertificateAndKey issued = authority.Issue({.role = v1::ROLE_SERVER, .hosts = {"a.b"}}).value();
};

std::string Content(const std::string& file) { return ReadFile(file, 1 << 20).value(); }

absl::StatusOr<SecuritySettings> Settings(const SecurityFlags& flags,
                                          EndOfCalls end = EndOfCalls::kAnswers,
                                          const v1::Security& job = {}) {
  return SettingsOf(flags, job, end);
}

std::string Refusal(const SecurityFlags& flags, EndOfCalls end = EndOfCalls::kAnswers) {
  const auto settings = Settings(flags, end);
  CHECK(absl::IsInvalidArgument(settings.status()));
  return std::string(settings.status().message());
}

TEST_CASE("a folder of certificates means mutual TLS, unless something else is said") {
  const Files files;
  SecurityFlags flags{.tls_dir = files.folder.path()};
  const auto settings = Settings(flags);
  REQUIRE(settings.ok());
  CHECK(settings->tls == v1::TLS_MODE_MTLS);
  CHECK(Content(settings->certificates->identity_file()) ==
        absl::StrCat(files.issued.certificate, "\n", files.issued.key));
  flags.tls = "none";
  CHECK(Settings(flags)->tls == v1::TLS_MODE_NONE);
  flags.tls = "tls";
  const auto client = Settings(flags, EndOfCalls::kCalls);
  REQUIRE(client.ok());
  CHECK(client->certificates->identity_file().empty());
  CHECK(Settings({})->tls == v1::TLS_MODE_NONE);
  CHECK(Settings({})->certificates == nullptr);
}

TEST_CASE("a job that says nothing of TLS does not take it from who gives certificates") {
  const Files files;
  v1::Security job;
  job.mutable_tls()->set_mode(v1::TLS_MODE_NONE);
  const SecurityFlags flags{.tls_dir = files.folder.path()};
  CHECK(SettingsOf(flags, job, EndOfCalls::kAnswers)->tls == v1::TLS_MODE_MTLS);
  job.mutable_tls()->set_mode(v1::TLS_MODE_TLS);
  CHECK(SettingsOf(flags, job, EndOfCalls::kAnswers)->tls == v1::TLS_MODE_TLS);
}

TEST_CASE("flags go before the job, key by key") {
  const Files files;
  v1::Security job;
  job.mutable_tls()->set_mode(v1::TLS_MODE_MTLS);
  job.mutable_tls()->set_ca("/nowhere/ca.crt");
  job.mutable_tls()->set_certificate(files / kCertificateFile);
  job.mutable_tls()->set_key(files / kKeyFile);
  CHECK_FALSE(SettingsOf({}, job, EndOfCalls::kAnswers).ok());
  const auto settings = SettingsOf({.ca = files / kCaFile}, job, EndOfCalls::kAnswers);
  REQUIRE(settings.ok());
  CHECK(Content(settings->certificates->ca_file()) == files.authority.own().certificate);
  CHECK(SettingsOf({.tls = "none"}, job, EndOfCalls::kAnswers)->tls == v1::TLS_MODE_NONE);
}

TEST_CASE("what is missing or wrong is named before anything starts") {
  const Files files;
  const SecurityFlags good{.tls_dir = files.folder.path()};
  CHECK_THAT(Refusal({.tls = "on"}), Catch::Contains("--tls on: use none, tls or mtls"));
  CHECK_THAT(Refusal({.tls = "mtls"}), Catch::Contains("--tls-certificate FILE"));
  SecurityFlags flags = good;
  flags.ca = files / "missing.crt";
  CHECK_THAT(Refusal(flags), Catch::Contains("missing.crt"));
  flags = good;
  flags.certificate = files / kKeyFile;
  CHECK_THAT(Refusal(flags), Catch::Contains("has no certificate in PEM"));
  flags = good;
  flags.key = files / kCertificateFile;
  CHECK_THAT(Refusal(flags), Catch::Contains("has no private key in PEM"));
  const Files other;
  flags = good;
  flags.key = other / kKeyFile;
  CHECK_THAT(Refusal(flags), Catch::Contains("is not the key of"));
  flags = good;
  flags.ca = other / kCaFile;
  CHECK_THAT(Refusal(flags), Catch::Contains("cannot be verified with"));
  CHECK_THAT(Refusal({.token_file = files / "no-token"}), Catch::Contains("no-token"));
  CHECK_THAT(Refusal({.token = "short"}), Catch::Contains("LEEWAY_TOKEN: a token has 16 to"));
  CHECK_THAT(Refusal({.token = "0123456789 0123456789"}),
             Catch::Contains("this one has other characters"));
  CHECK_THAT(Refusal({.status_token = "0123456789abcdef"}),
             Catch::Contains("give the job a token"));
}

TEST_CASE("the trust domain is that of the own certificate, and no other one can be said") {
  const Files files;
  const auto issued =
      files.authority.Issue({.role = v1::ROLE_SERVER, .trust_domain = "vision"}).value();
  const std::string folder = files / "vision";
  REQUIRE(WriteCredentials(folder, files.authority.own().certificate, issued).ok());
  CHECK(Settings({.tls_dir = folder})->trust_domain == "vision");
  CHECK(Settings({.tls_dir = folder, .trust_domain = "vision"})->trust_domain == "vision");
  CHECK_THAT(Refusal({.tls_dir = folder, .trust_domain = "speech"}),
             Catch::Contains("--trust-domain speech: the certificate ") &&
                 Catch::Contains("is for the trust domain 'vision'"));
  CHECK_THAT(Refusal({.tls_dir = folder, .trust_domain = "a/b"}),
             Catch::Contains("--trust-domain 'a/b': a trust domain has"));
  // A client without a certificate states the server's name, or accepts any.
  const SecurityFlags client{.tls = "tls", .ca = files / kCaFile};
  CHECK(Settings(client, EndOfCalls::kCalls)->trust_domain.empty());
  SecurityFlags said = client;
  said.trust_domain = "vision";
  CHECK(Settings(said, EndOfCalls::kCalls)->trust_domain == "vision");
  CHECK(absl::IsInvalidArgument(
      files.authority.Issue({.role = v1::ROLE_WORKER, .trust_domain = "a,URI:b"}).status()));
}

TEST_CASE("a server needs a server's certificate, and who only calls may have any") {
  const Files files;
  const auto issued = files.authority.Issue({.role = v1::ROLE_WORKER}).value();
  const std::string folder = files / "worker";
  REQUIRE(WriteCredentials(folder, files.authority.own().certificate, issued).ok());
  CHECK_THAT(Refusal({.tls_dir = folder}),
             Catch::Contains(
                 "worker/tls.crt is a worker's certificate for the trust domain 'leeway', but a "
                 "server needs a server's certificate"));
  CHECK(Settings({.tls_dir = folder}, EndOfCalls::kCalls).ok());
}

TEST_CASE("a certificate whose time is over is refused by its date") {
  const Files files;
  const auto old = files.authority.Issue({.role = v1::ROLE_SERVER, .days = 0}).value();
  const std::string folder = files / "old";
  REQUIRE(WriteCredentials(folder, files.authority.own().certificate, old).ok());
  const auto settings = Settings({.tls_dir = folder});
  CHECK_THAT(std::string(settings.status().message()), Catch::Contains("certificate has expired"));
}

TEST_CASE("keys are for their owner alone, and hosts are names or addresses") {
  const Files files;
  using std::filesystem::perms;
  for (const char* name : {kCaFile, kCertificateFile, kKeyFile}) {
    CHECK(std::filesystem::status(files / name).permissions() ==
          (perms::owner_read | perms::owner_write));
  }
  for (const char* host : {"", "a b", "a,URI:spiffe://leeway/leeway/server", "a/b", "a;b"}) {
    INFO(host);
    CHECK(absl::IsInvalidArgument(
        files.authority.Issue({.role = v1::ROLE_WORKER, .hosts = {host}}).status()));
  }
  CHECK(
      files.authority.Issue({.role = v1::ROLE_WORKER, .hosts = {"*.a.svc", "10.0.0.1", "fe80::1"}})
          .ok());
  CHECK(absl::IsInvalidArgument(
      CertificateAuthority::Load({files.authority.own().certificate, files.issued.key}).status()));
}

TEST_CASE("who listens beyond this machine asks for certificates, or says that it does not") {
  for (const char* here : {"127.0.0.1:0", "127.8.8.8:1", "[::1]:7000", "localhost:7000"}) {
    CHECK(CheckMayListen(here, v1::TLS_MODE_NONE, false).ok());
  }
  for (const char* there :
       {"0.0.0.0:7000", "[::]:7000", "10.0.0.1:7000", "a-host:7000", "0:7000"}) {
    INFO(there);
    CHECK(absl::IsFailedPrecondition(CheckMayListen(there, v1::TLS_MODE_NONE, false)));
    CHECK(absl::IsFailedPrecondition(CheckMayListen(there, v1::TLS_MODE_TLS, false)));
    CHECK(CheckMayListen(there, v1::TLS_MODE_MTLS, false).ok());
    CHECK(CheckMayListen(there, v1::TLS_MODE_NONE, true).ok());
  }
}

}  // namespace
}  // namespace leeway::settings
