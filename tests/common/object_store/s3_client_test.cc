#include "common/object_store/s3_client.h"

#include "absl/strings/match.h"
#include "tests/catch.h"
#include "tests/common/object_store/fake_transport.h"

namespace leeway::s3_client {
namespace {

constexpr uint8_t kBody[] = {'a', 'b', 'c'};

struct Rig {
  explicit Rig(std::function<absl::StatusOr<Credentials>()> renew = nullptr) {
    S3ClientOptions options{.bucket = "bucket", .endpoint = *ParseEndpoint("http://store:9000")};
    options.settings.region = "us-east-1";
    options.settings.part_bytes = 10;
    options.settings.retry_total = std::chrono::seconds(60);
    options.settings.stall = std::chrono::seconds(15);
    auto credentials = std::make_unique<KeptCredentials>(
        Credentials{"key", "hidden-secret", "token"}, std::move(renew));
    client = std::make_unique<S3Client>(options, std::move(credentials),
                                        std::make_unique<FakeTransport>(&script), script.Clock());
  }
  std::string Header(const std::string& name) const {
    for (const auto& [each, value] : script.requests.back().headers) {
      if (each == name) return value;
    }
    return "";
  }
  Scripted script;
  std::unique_ptr<S3Client> client;
};

TEST_CASE("the deadline of a request grows with its bytes, also for an absurd size") {
  CHECK(RequestDeadline(uint64_t{1} << 60) > RequestDeadline(uint64_t{1} << 30));
}

TEST_CASE("a request carries checksums of its body, the session token and deadlines") {
  Rig rig;
  rig.script.Answer(200);
  REQUIRE(rig.client->Put("a b", kBody).ok());
  const HttpRequest& request = rig.script.requests.back();
  CHECK(request.method == "PUT");
  CHECK(request.url == "http://store:9000/bucket/a%20b");
  CHECK(rig.Header("x-amz-content-sha256") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(rig.Header("Content-MD5") == "kAFQmDzST7DWlj99KOF/cg==");
  CHECK(rig.Header("x-amz-security-token") == "token");
  CHECK(request.credentials.access_key_id == "key");
  CHECK(request.deadline >= Duration(std::chrono::seconds(30)));
  CHECK(request.deadline < Duration(std::chrono::seconds(200)));
  CHECK(request.stall == Duration(std::chrono::seconds(15)));
}

TEST_CASE("what may pass is sent again, and what will not is not") {
  Rig rig;
  SECTION("until it succeeds") {
    rig.script.Refuse(503, "SlowDown");
    rig.script.answers.emplace_back(absl::UnavailableError("connection reset"));
    rig.script.Refuse(500, "InternalError");
    rig.script.Refuse(400, "RequestTimeout");
    rig.script.Answer(200);
    CHECK(rig.client->Put("k", kBody).ok());
    CHECK(rig.script.pauses.size() == 4);
    for (const std::string& body : rig.script.bodies) CHECK(body == "abc");
  }
  SECTION("or the time is over") {
    rig.script.Refuse(503, "SlowDown");
    const absl::Status status = rig.client->Put("k", kBody);
    CHECK(absl::IsUnavailable(status));
    CHECK_THAT(std::string(status.message()), Catch::Contains("given up after") &&
                                                  Catch::Contains("s3://bucket/k") &&
                                                  Catch::Contains("HTTP 503, SlowDown"));
    CHECK(rig.script.now < Time() + std::chrono::seconds(60));
    CHECK(rig.script.now > Time() + std::chrono::seconds(45));
  }
  SECTION("not sooner than the store asks") {
    rig.script.Answer(503, "", {{"retry-after", "7"}});
    rig.script.Answer(200);
    CHECK(rig.client->Put("k", kBody).ok());
    CHECK(rig.script.pauses.front() >= Duration(std::chrono::seconds(7)));
  }
  SECTION("never what stays wrong") {
    rig.script.Refuse(403, "AccessDenied");
    CHECK(absl::IsPermissionDenied(rig.client->Put("k", kBody)));
    CHECK(rig.script.requests.size() == 1);
  }
}

TEST_CASE("errors are typed, and say what, where and what to do, but no secret") {
  const std::tuple<int, const char*, absl::StatusCode, const char*> cases[] = {
      {403, "AccessDenied", absl::StatusCode::kPermissionDenied, "docs/storage.md"},
      {403, "SignatureDoesNotMatch", absl::StatusCode::kUnauthenticated, "AWS_SECRET_ACCESS_KEY"},
      {403, "InvalidAccessKeyId", absl::StatusCode::kUnauthenticated, "AWS_ACCESS_KEY_ID"},
      {403, "RequestTimeTooSkewed", absl::StatusCode::kUnauthenticated, "clock"},
      {404, "NoSuchBucket", absl::StatusCode::kFailedPrecondition, "make the bucket"},
      {301, "PermanentRedirect", absl::StatusCode::kFailedPrecondition, "AWS_REGION"},
      {507, "XMinioStorageFull", absl::StatusCode::kResourceExhausted, "free space"},
      {400, "Strange", absl::StatusCode::kFailedPrecondition, "Strange"},
      {501, "NotImplemented", absl::StatusCode::kUnimplemented, "NotImplemented"}};
  for (const auto& [http, name, code, advice] : cases) {
    CAPTURE(name);
    Rig rig;
    rig.script.Refuse(http, name);
    const absl::Status status = rig.client->Put("k", kBody);
    CHECK(status.code() == code);
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("PutObject s3://bucket/k at store:9000") &&
                   Catch::Contains(std::to_string(http)) && Catch::Contains(name) &&
                   Catch::Contains(advice) && !Catch::Contains("hidden-secret"));
  }
  Rig rig;
  rig.script.Answer(404);
  CHECK(absl::IsNotFound(rig.client->Head("k").status()));
  rig.script.answers.clear();
  rig.script.Answer(403);
  const absl::Status unexplained = rig.client->Head("k").status();
  CHECK(absl::IsPermissionDenied(unexplained));
  CHECK_THAT(std::string(unexplained.message()),
             Catch::Contains("the credentials may belong to another store"));
  rig.script.answers.clear();
  for (const int http : {403, 404}) {
    rig.script.Answer(http, "<html>Not here</html>");
    const absl::Status foreign = rig.client->List("", "").status();
    CHECK(absl::IsFailedPrecondition(foreign));
    CHECK_THAT(std::string(foreign.message()), Catch::Contains("check AWS_ENDPOINT_URL"));
    rig.script.answers.clear();
  }
  rig.script.Answer(301, "", {{"x-amz-bucket-region", "eu-west-3"}});
  CHECK_THAT(std::string(rig.client->Head("k").status().message()), Catch::Contains("eu-west-3"));
}

TEST_CASE("credentials that were renewed meanwhile are taken, once") {
  int asked = 0;
  Credentials next{"new", "newer", ""};
  Rig rig([&]() -> absl::StatusOr<Credentials> {
    ++asked;
    return next;
  });
  rig.script.Refuse(400, "ExpiredToken");
  rig.script.Answer(200);
  CHECK(rig.client->Put("k", kBody).ok());
  CHECK(rig.script.requests.back().credentials == next);
  CHECK(rig.Header("x-amz-security-token").empty());
  rig.script.answers.clear();
  rig.script.Refuse(400, "ExpiredToken");
  CHECK(absl::IsUnauthenticated(rig.client->Put("k", kBody)));
  CHECK(asked == 2);
  CHECK(rig.script.requests.size() == 3);
}

// A source that has credentials only after some requests.
class Late final : public CredentialSource {
 public:
  Late(int missing, absl::Status failure) : missing_(missing), failure_(std::move(failure)) {}
  absl::StatusOr<Credentials> Get() override {
    if (missing_-- > 0) return failure_;
    return Credentials{"late", "s", "t"};
  }
  bool Renew(const Credentials&) override { return false; }

 private:
  int missing_;
  const absl::Status failure_;
};

TEST_CASE("credentials that may come are waited for, nothing is sent without") {
  Scripted script;
  script.Answer(200);
  S3ClientOptions options{.bucket = "bucket", .endpoint = *ParseEndpoint("http://store:9000")};
  options.settings.retry_total = std::chrono::seconds(60);
  const auto put = [&](absl::Status failure) {
    S3Client client(options, std::make_unique<Late>(2, std::move(failure)),
                    std::make_unique<FakeTransport>(&script), script.Clock());
    return client.Put("k", kBody);
  };
  CHECK(put(absl::UnavailableError("no answer")).ok());
  CHECK(script.pauses.size() == 2);
  REQUIRE(script.requests.size() == 1);
  CHECK(script.requests.back().credentials.access_key_id == "late");
  CHECK(absl::IsUnauthenticated(put(absl::UnauthenticatedError("the token has expired"))));
  CHECK(script.requests.size() == 1);
}

TEST_CASE("a listing has all pages") {
  Rig rig;
  rig.script.Answer(
      200,
      "<ListBucketResult "
      "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><IsTruncated>true</IsTruncated>"
      "<NextContinuationToken>a/b=</NextContinuationToken><Contents><Key>x/a&amp;b</Key>"
      "<ETag>&quot;7&quot;</ETag><Size>5000000000</Size></Contents>"
      "<CommonPrefixes><Prefix>x/y/</Prefix></CommonPrefixes></ListBucketResult>");
  rig.script.Answer(
      200,
      "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>x/c</Key></Contents>"
      "</ListBucketResult>");
  const auto listing = rig.client->List("x/", "/");
  REQUIRE(listing.ok());
  REQUIRE(listing->objects.size() == 2);
  CHECK(listing->objects[0].key == "x/a&b");
  CHECK(listing->objects[0].size == 5000000000);
  CHECK(listing->objects[0].etag == "\"7\"");
  CHECK(listing->objects[1].key == "x/c");
  CHECK(listing->prefixes == std::vector<std::string>{"x/y/"});
  CHECK(
      rig.script.requests.back().url ==
      "http://store:9000/bucket?continuation-token=a%2Fb%3D&delimiter=%2F&list-type=2&prefix=x%2F");
}

TEST_CASE("an answer that is cut short or no XML is asked for again") {
  Rig rig;
  rig.script.Answer(200, "<ListBucketResult><Contents><Key>x");
  rig.script.Answer(200, "<html>a proxy</html>");
  rig.script.Answer(200, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>");
  CHECK(rig.client->List("x/", "").ok());
  CHECK(rig.script.requests.size() == 3);
  rig.script.answers.clear();
  rig.script.Answer(206, "ab");
  rig.script.Answer(200, "abcdef");
  rig.script.Answer(206, "abc");
  uint8_t got[3];
  CHECK(rig.client->Get("k", "\"tag\"", 5, got).ok());
  CHECK(rig.Header("Range") == "bytes=5-7");
  CHECK(rig.Header("If-Match") == "\"tag\"");
}

constexpr char kDone[] =
    "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>";

TEST_CASE(
    "an upload is complete if the object that is there has its mark, whatever became of the "
    "answer") {
  Rig rig;
  const auto complete = [&] {
    return rig.client->CompleteUpload("k", "id", {"\"a&b\"", "e2"}, "mark");
  };
  SECTION("at once") {
    rig.script.Answer(200, kDone);
    CHECK(complete().ok());
    CHECK(absl::StrContains(rig.script.bodies[0],
                            "<Part><PartNumber>1</PartNumber><ETag>\"a&amp;b\"</ETag></Part>"
                            "<Part><PartNumber>2</PartNumber><ETag>e2</ETag></Part>"));
  }
  SECTION("after a lost answer") {
    rig.script.answers.emplace_back(absl::UnavailableError("cut"));
    rig.script.Answer(200, "", {{"x-amz-meta-leeway-upload", "mark"}});
    CHECK(complete().ok());
  }
  SECTION("after an error under status 200") {
    rig.script.Answer(200, "<Error><Code>InternalError</Code></Error>");
    rig.script.Answer(404);
    rig.script.Answer(200, kDone);
    CHECK(complete().ok());
    CHECK(rig.script.requests.size() == 3);
  }
  SECTION("not with the mark of another") {
    rig.script.Refuse(404, "NoSuchUpload");
    rig.script.Answer(200, "", {{"x-amz-meta-leeway-upload", "other"}});
    CHECK(absl::IsAborted(complete()));
  }
}

TEST_CASE("uploads are listed by pages, and an upload that is gone was aborted") {
  Rig rig;
  rig.script.Answer(
      200,
      "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k1</NextKeyMarker>"
      "<NextUploadIdMarker>i1</NextUploadIdMarker><Upload><Key>k1</Key><UploadId>i1</UploadId></"
      "Upload>"
      "</ListMultipartUploadsResult>");
  rig.script.Answer(
      200,
      "<ListMultipartUploadsResult><Upload><Key>k2</Key><UploadId>i2</UploadId></Upload>"
      "</ListMultipartUploadsResult>");
  const auto uploads = rig.client->ListUploads("k");
  REQUIRE(uploads.ok());
  REQUIRE(uploads->size() == 2);
  CHECK((*uploads)[1].id == "i2");
  CHECK(absl::StrContains(rig.script.requests.back().url,
                          "key-marker=k1&prefix=k&upload-id-marker=i1&uploads="));
  rig.script.answers.clear();
  rig.script.Refuse(404, "NoSuchUpload");
  CHECK(rig.client->AbortUpload("k", "id").ok());
}

}  // namespace
}  // namespace leeway::s3_client
