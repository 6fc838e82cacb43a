// The job's token, whose file may change.
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
  // Makes an object without a token, which nothing matches.
  KeptToken() = default;
  // Keeps a token that does not change. Implicit, so that a Token can be passed.
  KeptToken(Token token);
  // Keeps the tokens in a file (Token::ReadFrom), and reads them again when the file changes. If
  // the file becomes invalid, logs the error and keeps using the previous tokens.
  static absl::StatusOr<KeptToken> Keep(const std::string& file,
                                        Duration look_every = FileWatch::kLookEvery);

  bool empty() const { return state_ == nullptr; }
  // Return the token that calls carry, which is the first one, and the metadata with it. Both are
  // empty if there is no token.
  std::string text() const;
  std::string Authorization() const;
  // Returns whether `authorization` has one of the tokens.
  bool Matches(absl::string_view authorization) const;

  // Checks the file once.
  void Look() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leeway
