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

// Copies are the same one. Thread-safe.
class KeptToken {
 public:
  // None: nothing matches it.
  KeptToken() = default;
  // One that stays. Implicit: every token is one.
  KeptToken(Token token);
  // As the file has them (Token::ReadFrom), now and when it changes. A file that is wrong later is
  // told in the log, and the tokens before it stay.
  static absl::StatusOr<KeptToken> Keep(const std::string& file,
                                        Duration look_every = FileWatch::kLookEvery);

  bool empty() const { return state_ == nullptr; }
  // What a call brings: the first. Of none "".
  std::string text() const;
  std::string Authorization() const;
  // Whether `authorization` is of one of them.
  bool Matches(absl::string_view authorization) const;

  // Looks at the file once.
  void Look() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace leeway
