// Smart pointers for OpenSSL's objects.
#pragma once

#include <memory>
#include <string>

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

namespace leeway {

template <auto kFree>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using BioPtr = std::unique_ptr<BIO, FreedBy<BIO_free_all>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using CertificatePtr = std::unique_ptr<X509, FreedBy<X509_free>>;

// Returns why the last call failed, and clears OpenSSL's error queue.
std::string OpensslError();

// Returns a BIO that reads `text`, which must outlive the result.
BioPtr ReadingBio(const std::string& text);

}  // namespace leeway
