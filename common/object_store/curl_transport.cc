#include "common/object_store/curl_transport.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include <curl/curl.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

constexpr std::chrono::seconds kConnectWithin(10);
// The maximum number of idle handles that are kept. It is the number of requests that are in
// progress at the same time.
constexpr size_t kIdleMax = 16;

long Milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

// One request in progress.
struct Transfer {
  std::span<const uint8_t> body;
  size_t sent = 0;
  uint64_t answer_bytes_max = 0;
  bool too_long = false;
  HttpAnswer answer = {};
};

size_t OnRead(char* target, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const size_t bytes = std::min(size * count, transfer.body.size() - transfer.sent);
  std::memcpy(target, transfer.body.data() + transfer.sent, bytes);
  transfer.sent += bytes;
  return bytes;
}

// libcurl calls this function to send the body again from its beginning, when a connection that was
// kept open turns out to be closed.
int OnSeek(void* context, curl_off_t offset, int origin) {
  if (origin != SEEK_SET) return CURL_SEEKFUNC_CANTSEEK;
  static_cast<Transfer*>(context)->sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

size_t OnWrite(char* data, size_t size, size_t count, void* context) {
  auto& transfer = *static_cast<Transfer*>(context);
  const size_t bytes = size * count;
  transfer.too_long = transfer.answer.body.size() + bytes > transfer.answer_bytes_max;
  if (transfer.too_long) return 0;
  transfer.answer.body.append(data, bytes);
  return bytes;
}

size_t OnHeader(char* data, size_t size, size_t count, void* context) {
  auto& headers = static_cast<Transfer*>(context)->answer.headers;
  const absl::string_view line(data, size * count);
  const size_t colon = line.find(':');
  // A status line begins an answer. Only the headers of the last answer count, because earlier
  // answers are interim (100 Continue).
  if (colon == absl::string_view::npos) {
    if (line.substr(0, 5) == "HTTP/") headers.clear();
    return line.size();
  }
  headers[absl::AsciiStrToLower(line.substr(0, colon))] =
      std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  return line.size();
}

class HeaderList {
 public:
  explicit HeaderList(const HttpRequest& request) {
    for (const auto& [name, value] : request.headers) {
      list_ = curl_slist_append(list_, absl::StrCat(name, ": ", value).c_str());
    }
  }
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

void SetMethod(CURL* curl, const HttpRequest& request) {
  if (request.method == "HEAD") {
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT") {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, OnRead);
    curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, OnSeek);
  } else if (request.method == "POST") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(
        curl, CURLOPT_POSTFIELDS,
        request.body.empty() ? "" : reinterpret_cast<const char*>(request.body.data()));
  } else {
    curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    if (request.method != "GET")
      curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

void SetLimits(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   Milliseconds(std::min<Duration>(kConnectWithin, request.deadline)));
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, Milliseconds(request.deadline));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(
      curl, CURLOPT_LOW_SPEED_TIME,
      static_cast<long>(std::chrono::ceil<std::chrono::seconds>(request.stall).count()));
  curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // A key may have parts "." and "..", which libcurl must not resolve.
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
}

void SetSignature(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4,
                   absl::StrCat("aws:amz:", request.region, ":s3").c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, request.credentials.access_key_id.c_str());
  curl_easy_setopt(curl, CURLOPT_PASSWORD, request.credentials.secret_access_key.c_str());
}

absl::Status Unanswered(CURLcode code, const char* detail, const Transfer& transfer) {
  if (transfer.too_long) {
    return absl::UnavailableError(
        absl::StrCat("the answer has more than ", transfer.answer_bytes_max, " bytes"));
  }
  const std::string text = *detail != 0 ? detail : curl_easy_strerror(code);
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return absl::FailedPreconditionError(
          absl::StrCat(text, "; set AWS_CA_BUNDLE to the file with the certificates to trust"));
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return absl::FailedPreconditionError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace

void CurlTransport::Free::operator()(void* handle) const { curl_easy_cleanup(handle); }

CurlTransport::CurlTransport(std::string ca_file) : ca_file_(std::move(ca_file)) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

CurlTransport::~CurlTransport() = default;

CurlTransport::Handle CurlTransport::Take() {
  {
    MutexLock lock(mutex_);
    if (!idle_.empty()) {
      Handle handle = std::move(idle_.back());
      idle_.pop_back();
      return handle;
    }
  }
  return Handle(curl_easy_init());
}

void CurlTransport::Return(Handle handle) {
  // The reset keeps the handle's connections and its cache of addresses.
  curl_easy_reset(handle.get());
  MutexLock lock(mutex_);
  if (idle_.size() < kIdleMax) idle_.push_back(std::move(handle));
}

absl::StatusOr<HttpAnswer> CurlTransport::Send(const HttpRequest& request) {
  Handle handle = Take();
  CURL* curl = handle.get();
  if (curl == nullptr) return absl::UnavailableError("libcurl is out of memory");
  Transfer transfer{.body = request.body, .answer_bytes_max = request.answer_bytes_max};
  const HeaderList headers(request);
  char detail[CURL_ERROR_SIZE] = {};
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_READDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_SEEKDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, OnWrite);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, OnHeader);
  if (!ca_file_.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, ca_file_.c_str());
  SetMethod(curl, request);
  SetLimits(curl, request);
  if (!request.credentials.access_key_id.empty()) SetSignature(curl, request);
  if (request.direct) curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  Return(std::move(handle));
  if (code != CURLE_OK) return Unanswered(code, detail, transfer);
  transfer.answer.status = static_cast<int>(status);
  return std::move(transfer.answer);
}

std::string HttpAnswer::Header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

}  // namespace leeway
