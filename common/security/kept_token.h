// The job's token while its file changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/security/file_watch.h"
#include "common/security/token.h"

namespace leeway {

// Copies share one state. Thread-safe.
class KeptToken {
 public:
  // No token: nothing matches it.
  KeptToken() = default;
  // A token that does not change. Implicit, so that a Token can be passed.
  KeptToken(Token token);
  // The tokens in the file (Token::ReadFrom), now and after each change. If the file becomes
  // invalid, the log says so, and the previous tokens stay.
  static absl::StatusOr<KeptToken> Keep(const std::string& file,
                                        Duration look_every = FileWatch::kLookEvery);

  bool empty() const { return state_ == nullptr; }
  // The token that calls bring: the first one. Without a token "".
  std::string text() const;
  std::string Authorization() const;
  // Whether `authorization` carries one of the tokens.
  bool Matches(absl::string_view authorization) const;

  // Checks the file once.
  void Look() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leeway
