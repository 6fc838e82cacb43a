#include "common/object_store/s3_messages.h"

#include <sstream>

#include <pugixml.hpp>

#include "absl/strings/str_cat.h"
#include "common/printable.h"
#include "common/status.h"

namespace leeway {
namespace {

// Parses the body and returns its root element, which must have this name. `document` must outlive
// the element.
absl::StatusOr<pugi::xml_node> Root(pugi::xml_document& document, const std::string& body,
                                    const char* name) {
  const pugi::xml_parse_result parsed = document.load_buffer(body.data(), body.size());
  if (parsed && document.document_element().name() == std::string(name)) {
    return document.document_element();
  }
  return absl::UnavailableError(
      absl::StrCat("the answer is not a ", name, ": ", Printable(body, /*max=*/100)));
}

std::string Text(const pugi::xml_node& node, const char* name) { return node.child_value(name); }

S3Error ErrorOf(const pugi::xml_node& node) {
  return {Printable(Text(node, "Code"), kWordBytesMax), Printable(Text(node, "Message")),
          Printable(Text(node, "Region"), kWordBytesMax)};
}

bool IsTruncated(const pugi::xml_node& root) { return Text(root, "IsTruncated") == "true"; }

}  // namespace

S3Error ParseS3Error(const std::string& body) {
  pugi::xml_document document;
  const auto root = Root(document, body, "Error");
  return root.ok() ? ErrorOf(*root) : S3Error();
}

absl::StatusOr<S3Listing> ParseListing(const std::string& body) {
  pugi::xml_document document;
  ASSIGN_OR_RETURN(const pugi::xml_node root, Root(document, body, "ListBucketResult"));
  S3Listing listing;
  for (const auto& each : root.children("Contents")) {
    listing.objects.push_back(
        {Text(each, "Key"), each.child("Size").text().as_ullong(), Text(each, "ETag")});
  }
  for (const auto& each : root.children("CommonPrefixes")) {
    listing.prefixes.push_back(Text(each, "Prefix"));
  }
  if (!IsTruncated(root)) return listing;
  listing.continuation = Text(root, "NextContinuationToken");
  if (!listing.continuation.empty()) return listing;
  return absl::UnavailableError(
      "the listing is incomplete: it has IsTruncated, but no NextContinuationToken");
}

absl::StatusOr<S3Uploads> ParseUploads(const std::string& body) {
  pugi::xml_document document;
  ASSIGN_OR_RETURN(const pugi::xml_node root, Root(document, body, "ListMultipartUploadsResult"));
  S3Uploads found;
  for (const auto& each : root.children("Upload")) {
    found.uploads.push_back({Text(each, "Key"), Text(each, "UploadId")});
  }
  if (IsTruncated(root)) {
    found.next = {Text(root, "NextKeyMarker"), Text(root, "NextUploadIdMarker")};
  }
  return found;
}

absl::StatusOr<std::string> ParseUploadId(const std::string& body) {
  pugi::xml_document document;
  ASSIGN_OR_RETURN(const pugi::xml_node root,
                   Root(document, body, "InitiateMultipartUploadResult"));
  std::string id = Text(root, "UploadId");
  if (id.empty()) return absl::UnavailableError("the answer has no UploadId");
  return id;
}

absl::Status ParseCompleted(const std::string& body, S3Error& error) {
  pugi::xml_document document;
  const auto root = Root(document, body, "CompleteMultipartUploadResult");
  if (!root.ok()) error = ParseS3Error(body);
  return root.status();
}

std::string CompleteRequest(const std::vector<std::string>& etags) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("CompleteMultipartUpload");
  root.append_attribute("xmlns") = "http://s3.amazonaws.com/doc/2006-03-01/";
  for (size_t i = 0; i < etags.size(); ++i) {
    pugi::xml_node part = root.append_child("Part");
    part.append_child("PartNumber").text().set(static_cast<unsigned int>(i + 1));
    part.append_child("ETag").text().set(etags[i].c_str());
  }
  std::ostringstream text;
  document.save(text, "", pugi::format_raw);
  return text.str();
}

}  // namespace leeway
