#include "common/object_store/address.h"

#include "tests/catch.h"

namespace leeway::address {
namespace {

TEST_CASE("keys and queries are escaped as signatures want it") {
  CHECK(EscapeKey("run/clock-000000500/shard-0-of-2.lwck") ==
        "run/clock-000000500/shard-0-of-2.lwck");
  CHECK(EscapeKey("a b+c%/~_-.") == "a%20b%2Bc%25/~_-.");
  CHECK(EscapeKey("\xc3\xa4") == "%C3%A4");
  CHECK(EscapeKey("(1)*!'") == "%281%29%2A%21%27");
  CHECK(EscapeQuery("a/b=c&d") == "a%2Fb%3Dc%26d");
}

TEST_CASE(
    "a URL has the bucket in the path of an own endpoint, and in the host's name of Amazon's") {
  const auto own = ParseEndpoint("http://127.0.0.1:9000/");
  REQUIRE(own.ok());
  CHECK(UrlOf(*own, "bucket", "a b", {}) == "http://127.0.0.1:9000/bucket/a%20b");
  CHECK(UrlOf(*own, "bucket", "", {{"prefix", "x/"}, {"list-type", "2"}}) ==
        "http://127.0.0.1:9000/bucket?list-type=2&prefix=x%2F");
  CHECK(UrlOf(*own, "bucket", "k", {{"uploads", ""}}) == "http://127.0.0.1:9000/bucket/k?uploads=");
  CHECK(UrlOf(*ParseEndpoint("https://store/s3"), "bucket", "k", {}) ==
        "https://store/s3/bucket/k");
  CHECK(UrlOf(AmazonEndpoint("eu-central-1", "bucket"), "bucket", "k", {}) ==
        "https://bucket.s3.eu-central-1.amazonaws.com/k");
  CHECK(UrlOf(AmazonEndpoint("eu-central-1", "bucket"), "bucket", "", {{"a", "b"}}) ==
        "https://bucket.s3.eu-central-1.amazonaws.com/?a=b");
  CHECK(UrlOf(AmazonEndpoint("cn-north-1", "buc.ket"), "buc.ket", "k", {}) ==
        "https://s3.cn-north-1.amazonaws.com.cn/buc.ket/k");
}

TEST_CASE("an endpoint that is none is refused, and not repeated where it may hold a secret") {
  for (const char* url :
       {"", "127.0.0.1:9000", "ftp://x", "http://", "https://user:secret@host", "http://x?y"}) {
    CAPTURE(url);
    const auto endpoint = ParseEndpoint(url);
    CHECK(absl::IsInvalidArgument(endpoint.status()));
    CHECK_THAT(std::string(endpoint.status().message()), !Catch::Contains("secret"));
  }
}

}  // namespace
}  // namespace leeway::address
