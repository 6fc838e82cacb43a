#include "common/security/kept_token.h"

#include <utility>

#include <spdlog/spdlog.h>

#include "common/counted.h"
#include "common/mutex.h"
#include "common/status.h"

namespace leeway {

struct KeptToken::State {
  explicit State(std::vector<Token> read) : tokens(std::move(read)) {}

  absl::Status Take(const std::string& file) {
    ASSIGN_OR_RETURN(std::vector<Token> read, Token::ReadFrom(file));
    MutexLock lock(mutex);
    if (read == tokens) return absl::OkStatus();
    spdlog::info("{}: {}, in use from now on", file, Counted(read.size(), "token"));
    tokens = std::move(read);
    return absl::OkStatus();
  }

  Mutex mutex;
  // The tokens, at least one.
  std::vector<Token> tokens GUARDED_BY(mutex);
  // Null if the tokens do not come from a file. Declared last, so that its thread ends before the
  // other members are destroyed.
  std::unique_ptr<FileWatch> watch;
};

KeptToken::KeptToken(Token token) {
  if (token.empty()) return;
  state_ = std::make_shared<State>(std::vector<Token>{std::move(token)});
}

absl::StatusOr<KeptToken> KeptToken::Keep(const std::string& file, Duration look_every) {
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Token::ReadFrom(file));
  KeptToken kept;
  kept.state_ = std::make_shared<State>(std::move(tokens));
  kept.state_->watch = std::make_unique<FileWatch>(
      [here = kept.state_.get(), file] { return here->Take(file); }, look_every);
  return kept;
}

std::string KeptToken::text() const {
  if (empty()) return "";
  MutexLock lock(state_->mutex);
  return state_->tokens.front().text();
}

std::string KeptToken::Authorization() const {
  if (empty()) return "";
  MutexLock lock(state_->mutex);
  return state_->tokens.front().Authorization();
}

bool KeptToken::Matches(absl::string_view authorization) const {
  if (empty()) return false;
  bool matches = false;
  MutexLock lock(state_->mutex);
  for (const Token& token : state_->tokens) matches |= token.Matches(authorization);
  return matches;
}

void KeptToken::Look() const {
  if (!empty() && state_->watch != nullptr) state_->watch->Look();
}

}  // namespace leeway
