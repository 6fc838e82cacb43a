#include "common/security/certificate_files.h"

#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/files/files.h"
#include "common/security/openssl.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;

using StorePtr = std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>>;
using ContextPtr = std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>>;

absl::Status Bad(const std::string& file, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

absl::StatusOr<std::string> ReadPem(const std::string& file) {
  auto text = ReadFile(file, kFileBytesMax);
  if (!text.ok()) return absl::InvalidArgumentError(text.status().message());
  return text;
}

// Parses all certificates in the text, of which there must be at least one. `file` names the
// origin of the text in errors.
absl::StatusOr<std::vector<CertificatePtr>> ParseCertificates(const std::string& text,
                                                              const std::string& file) {
  const BioPtr bio = ReadingBio(text);
  std::vector<CertificatePtr> found;
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(next);
  }
  const bool whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = OpensslError();
  if (found.empty()) return Bad(file, absl::StrCat("has no certificate in PEM (", reason, ")"));
  // Refuse an incomplete certificate, because another process may still be writing the file.
  if (!whole) return Bad(file, absl::StrCat("its last certificate is incomplete (", reason, ")"));
  return found;
}

// Refuses a key that needs a passphrase, because no person is there to type one.
int NoPassphrase(char*, int, int, void*) { return -1; }

absl::StatusOr<KeyPtr> ParseKey(const std::string& text, const std::string& file) {
  const BioPtr bio = ReadingBio(text);
  KeyPtr key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  if (key != nullptr) return key;
  return Bad(file,
             absl::StrCat("has no private key in PEM without a passphrase (", OpensslError(), ")"));
}

// Checks the signatures and the period of validity of a chain of certificates.
absl::Status CheckSigned(const std::vector<CertificatePtr>& roots,
                         const std::vector<CertificatePtr>& chain, const CertificatePaths& paths) {
  const StorePtr store(X509_STORE_new());
  for (const CertificatePtr& root : roots) X509_STORE_add_cert(store.get(), root.get());
  // The certificates between the leaf and the root. The stack does not own them.
  STACK_OF(X509)* between = sk_X509_new_null();
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between, chain[i].get());
  const ContextPtr context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), chain.front().get(), between);
  const bool good = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  sk_X509_free(between);
  OpensslError();
  if (good) return absl::OkStatus();
  return Bad(paths.certificate, absl::StrCat("cannot be verified with ", paths.ca, ": ",
                                             X509_verify_cert_error_string(error)));
}

using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreedBy<GENERAL_NAMES_free>>;

std::vector<std::string> UrisOf(const X509* certificate) {
  const NamesPtr names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                      ASN1_STRING_length(uri));
  }
  return uris;
}

}  // namespace

absl::StatusOr<CertificatePem> ReadCertificateFiles(const CertificatePaths& paths) {
  CertificatePem pem;
  ASSIGN_OR_RETURN(pem.ca, ReadPem(paths.ca));
  ASSIGN_OR_RETURN(const auto roots, ParseCertificates(pem.ca, paths.ca));
  if (paths.certificate.empty()) return pem;
  ASSIGN_OR_RETURN(pem.certificate, ReadPem(paths.certificate));
  ASSIGN_OR_RETURN(pem.key, ReadPem(paths.key));
  ASSIGN_OR_RETURN(const auto chain, ParseCertificates(pem.certificate, paths.certificate));
  RETURN_IF_ERROR(CheckSigned(roots, chain, paths));
  ASSIGN_OR_RETURN(const KeyPtr key, ParseKey(pem.key, paths.key));
  const bool fits = X509_check_private_key(chain.front().get(), key.get()) == 1;
  OpensslError();
  if (!fits) return Bad(paths.key, absl::StrCat("is not the key of ", paths.certificate));
  pem.uris = UrisOf(chain.front().get());
  return pem;
}

absl::StatusOr<std::vector<std::string>> ReadUris(const std::string& certificate) {
  ASSIGN_OR_RETURN(const std::string pem, ReadPem(certificate));
  ASSIGN_OR_RETURN(const auto chain, ParseCertificates(pem, certificate));
  return UrisOf(chain.front().get());
}

}  // namespace leeway
