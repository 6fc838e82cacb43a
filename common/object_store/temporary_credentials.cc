#include "common/object_store/temporary_credentials.h"

#include <algorithm>
#include <utility>

#include <spdlog/spdlog.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"

namespace leeway {
namespace {

// The maximum size of a token. STS accepts at most 20,000 characters.
constexpr uint64_t kTokenBytesMax = 64 << 10;
constexpr absl::Duration kBeforeExpiry = absl::Minutes(5);
// The pause after a failure before the service is asked again. It is kAgain while the previous
// credentials are valid, and kAgainWithout if there are no valid credentials.
constexpr absl::Duration kAgain = absl::Seconds(30);
constexpr absl::Duration kAgainWithout = absl::Seconds(1);

}  // namespace

absl::StatusOr<Credentials> TemporaryCredentials::Get() {
  MutexLock lock(mutex_);
  while (IsDue(options_.now())) {
    if (!asking_) {
      Ask(options_.now());
      break;
    }
    if (options_.now() < given_.expires) break;
    answered_.Wait(mutex_);
  }
  if (options_.now() < given_.expires) return given_.credentials;
  if (!failure_.ok()) return failure_;
  return absl::UnavailableError("the credentials expired before they could be used");
}

bool TemporaryCredentials::Renew(const Credentials& refused) {
  {
    MutexLock lock(mutex_);
    if (given_.credentials == refused) {
      given_ = {};
      renew_at_ = absl::InfinitePast();
      failure_ = absl::OkStatus();
    }
  }
  const absl::StatusOr<Credentials> found = Get();
  return found.ok() && *found != refused;
}

bool TemporaryCredentials::IsDue(absl::Time now) const {
  if (!failure_.ok()) {
    const absl::Duration pause = now < given_.expires ? kAgain : kAgainWithout;
    return now < failed_at_ || now >= failed_at_ + pause;
  }
  if (now >= renew_at_) return true;
  const absl::StatusOr<std::string> token = Token();
  return token.ok() && *token != token_;
}

void TemporaryCredentials::Ask(absl::Time now) {
  asking_ = true;
  const absl::StatusOr<std::string> token = Token();
  if (token.ok()) token_ = *token;
  mutex_.Unlock();
  absl::StatusOr<ExpiringCredentials> given = AskOnce(token);
  mutex_.Lock();
  asking_ = false;
  failure_ = given.status();
  failed_at_ = options_.now();
  if (given.ok()) {
    given_ = *std::move(given);
    renew_at_ = given_.expires - std::min(kBeforeExpiry, (given_.expires - now) / 4);
  } else if (failed_at_ < given_.expires) {
    spdlog::warn("{}; the previous credentials stay valid until {}",
                 std::string(failure_.message()),
                 absl::FormatTime(given_.expires, absl::UTCTimeZone()));
  }
  answered_.NotifyAll();
}

absl::StatusOr<ExpiringCredentials> TemporaryCredentials::AskOnce(
    const absl::StatusOr<std::string>& token) const {
  if (!token.ok()) return token.status();
  absl::StatusOr<ExpiringCredentials> given = options_.ask(*token);
  if (!given.ok() || options_.now() < given->expires) return given;
  return absl::FailedPreconditionError(absl::StrCat(
      "the service returned credentials that had expired at ",
      absl::FormatTime(given->expires, absl::UTCTimeZone()), ": check this host's clock"));
}

absl::StatusOr<std::string> TemporaryCredentials::Token() const {
  if (options_.token_file.empty()) return "";
  const absl::StatusOr<std::string> text = ReadFile(options_.token_file, kTokenBytesMax);
  std::string why(text.status().message());
  if (text.ok()) {
    std::string token(absl::StripAsciiWhitespace(*text));
    const bool clean = std::none_of(token.begin(), token.end(), absl::ascii_iscntrl);
    if (!token.empty() && clean) return token;
    why = absl::StrCat("'", options_.token_file, "' ",
                       clean ? "is empty" : "has control characters, so it is not a token");
  }
  return absl::FailedPreconditionError(
      absl::StrCat(options_.what, ": ", why, "; mount the token there, or correct the path"));
}

}  // namespace leeway
