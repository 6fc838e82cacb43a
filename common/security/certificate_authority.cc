#include "common/security/certificate_authority.h"

#include <algorithm>
#include <utility>

#include <arpa/inet.h>
#include <openssl/bn.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files/private_files.h"
#include "common/security/role.h"
#include "common/status.h"

namespace leeway {
namespace {

// The time by which certificates are backdated, because the clocks of machines differ.
constexpr long kBackdateSeconds = 3600;
constexpr int kSerialBits = 127;
constexpr size_t kHostBytesMax = 253;

using BignumPtr = std::unique_ptr<BIGNUM, FreedBy<BN_free>>;
using ExtensionPtr = std::unique_ptr<X509_EXTENSION, FreedBy<X509_EXTENSION_free>>;

absl::Status Failed(const char* doing) {
  return absl::InternalError(absl::StrCat(doing, ": ", OpensslError()));
}

// Returns the PEM string that `write` produces.
template <typename Write>
absl::StatusOr<std::string> PemOf(const Write& write) {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  if (bio == nullptr || write(bio.get()) != 1) return Failed("writing PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size);
}

absl::StatusOr<CertificateAndKey> Pem(X509* certificate, EVP_PKEY* key) {
  CertificateAndKey pem;
  ASSIGN_OR_RETURN(pem.certificate,
                   PemOf([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); }));
  ASSIGN_OR_RETURN(pem.key, PemOf([&](BIO* bio) {
                     return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr,
                                                          nullptr);
                   }));
  return pem;
}

struct Blank {
  CertificatePtr certificate;
  KeyPtr key;
};

// Makes a new key and its certificate. The caller must still add a purpose and a signature.
absl::StatusOr<Blank> MakeBlank(const std::string& name, uint32_t days) {
  Blank blank{CertificatePtr(X509_new()), KeyPtr(EVP_EC_gen("P-256"))};
  X509* const made = blank.certificate.get();
  const BignumPtr serial(BN_new());
  bool good = made != nullptr && blank.key != nullptr && serial != nullptr;
  good = good && BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1;
  good = good && BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made)) != nullptr;
  good = good && X509_set_version(made, X509_VERSION_3) == 1;
  good = good && X509_gmtime_adj(X509_getm_notBefore(made), -kBackdateSeconds) != nullptr;
  good = good && X509_time_adj_ex(X509_getm_notAfter(made), static_cast<int>(days), 0, nullptr);
  good = good && X509_set_pubkey(made, blank.key.get()) == 1;
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  good = good && X509_NAME_add_entry_by_NID(X509_get_subject_name(made), NID_commonName,
                                            MBSTRING_UTF8, text, -1, -1, 0) == 1;
  if (!good) return Failed("making a certificate");
  return blank;
}

absl::Status Extend(X509* certificate, X509* signer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  const bool good =
      extension != nullptr && X509_add_ext(certificate, extension.get(), /*loc=*/-1) == 1;
  return good ? absl::OkStatus() : Failed("extending a certificate");
}

absl::Status Sign(X509* certificate, X509* signer, EVP_PKEY* key) {
  const bool good = X509_set_issuer_name(certificate, X509_get_subject_name(signer)) == 1 &&
                    X509_sign(certificate, key, EVP_sha256()) > 0;
  return good ? absl::OkStatus() : Failed("signing a certificate");
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[sizeof(in6_addr)];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

bool IsName(const std::string& host) {
  const auto may = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '.' || c == '*' || c == '_';
  };
  return !host.empty() && host.size() <= kHostBytesMax &&
         std::all_of(host.begin(), host.end(), may);
}

// Returns the subject alternative names in the form of OpenSSL's configuration, where a comma
// separates names. So a name with a comma would add another name, and is refused.
absl::StatusOr<std::string> NamesOf(const CertificateRequest& request) {
  RETURN_IF_ERROR(CheckTrustDomain("trust domain", request.trust_domain));
  std::vector<std::string> names = {
      absl::StrCat("URI:", RoleUri(request.role, request.rank, request.trust_domain))};
  for (const std::string& host : request.hosts) {
    const bool address = IsAddress(host);
    if (!address && !IsName(host)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", host, "' is neither a host name nor an address"));
    }
    names.push_back(absl::StrCat(address ? "IP:" : "DNS:", host));
  }
  return absl::StrJoin(names, ",");
}

}  // namespace

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(uint32_t days) {
  ASSIGN_OR_RETURN(Blank made, MakeBlank("Leeway job authority", days));
  X509* const own = made.certificate.get();
  RETURN_IF_ERROR(Extend(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(Extend(own, own, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(Extend(own, own, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(Sign(own, own, made.key.get()));
  ASSIGN_OR_RETURN(CertificateAndKey pem, Pem(own, made.key.get()));
  return CertificateAuthority(std::move(pem), std::move(made.certificate), std::move(made.key));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Load(const CertificateAndKey& own) {
  const BioPtr certificates = ReadingBio(own.certificate), keys = ReadingBio(own.key);
  CertificatePtr certificate(PEM_read_bio_X509(certificates.get(), nullptr, nullptr, nullptr));
  KeyPtr key(PEM_read_bio_PrivateKey(keys.get(), nullptr, nullptr, nullptr));
  const bool good = certificate != nullptr && key != nullptr &&
                    X509_check_private_key(certificate.get(), key.get()) == 1;
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a certificate and its key: ", OpensslError()));
  }
  return CertificateAuthority(own, std::move(certificate), std::move(key));
}

absl::StatusOr<CertificateAndKey> CertificateAuthority::Issue(
    const CertificateRequest& request) const {
  ASSIGN_OR_RETURN(const std::string names, NamesOf(request));
  ASSIGN_OR_RETURN(const Blank made,
                   MakeBlank(absl::StrCat("leeway ", RoleName(request.role)), request.days));
  X509* const issued = made.certificate.get();
  X509* const signer = certificate_.get();
  RETURN_IF_ERROR(Extend(issued, signer, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(Extend(issued, signer, NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(Extend(issued, signer, NID_ext_key_usage, "serverAuth,clientAuth"));
  RETURN_IF_ERROR(Extend(issued, signer, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(Extend(issued, signer, NID_authority_key_identifier, "keyid"));
  RETURN_IF_ERROR(Extend(issued, signer, NID_subject_alt_name, names));
  RETURN_IF_ERROR(Sign(issued, signer, key_.get()));
  return Pem(issued, made.key.get());
}

absl::Status WriteCredentials(const std::string& folder, const std::string& ca_certificate,
                              const CertificateAndKey& issued) {
  // Certificate and key are two files. If a process reads them between the two writes, it detects
  // that they do not match and reads them again.
  RETURN_IF_ERROR(WritePrivateFile(absl::StrCat(folder, "/", kCaFile), ca_certificate));
  RETURN_IF_ERROR(WritePrivateFile(absl::StrCat(folder, "/", kKeyFile), issued.key));
  return WritePrivateFile(absl::StrCat(folder, "/", kCertificateFile), issued.certificate);
}

}  // namespace leeway
