// Answers in a store's place, by the test's script.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "common/object_store/http.h"
#include "common/object_store/s3_client.h"

namespace leeway {

struct Scripted {
  std::deque<absl::StatusOr<HttpAnswer>> answers;
  std::vector<HttpRequest> requests;
  std::vector<std::string> bodies;
  // A clock that only pauses move.
  Time now;
  std::vector<Duration> pauses;

  void Answer(int status, std::string body = "", std::map<std::string, std::string> headers = {}) {
    answers.emplace_back(HttpAnswer{status, std::move(headers), std::move(body)});
  }
  void Refuse(int status, const std::string& code) {
    Answer(status, "<Error><Code>" + code + "</Code><Message>why</Message></Error>");
  }
  StoreTime Clock() {
    return {.now = [this] { return now; },
            .pause =
                [this](Duration pause) {
                  pauses.push_back(pause);
                  now += pause;
                },
            .seed = 7};
  }
};

class FakeTransport final : public HttpTransport {
 public:
  explicit FakeTransport(Scripted* script) : script_(script) {}
  absl::StatusOr<HttpAnswer> Send(const HttpRequest& request) override {
    script_->requests.push_back(request);
    script_->bodies.emplace_back(request.body.begin(), request.body.end());
    if (script_->answers.empty()) return absl::UnavailableError("nobody answers");
    absl::StatusOr<HttpAnswer> answer = script_->answers.front();
    // The last answer is repeated.
    if (script_->answers.size() > 1) script_->answers.pop_front();
    return answer;
  }

 private:
  Scripted* const script_;
};

}  // namespace leeway
