#include "worker/data/known_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace leeway {
namespace {

struct KnownFile {
  const char* name;  // in the data folder
  const char* set;
  const char* url;
  // How to prepare the download, and whether the checksum is of the download or of the result.
  // Empty if the download is used as it is.
  const char* preparation;
  const char* md5;
};

#define MNIST "https://ossci-datasets.s3.amazonaws.com/mnist/"
#define CIFAR10 "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
#define LIBSVM "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
#define UCI "https://archive.ics.uci.edu/ml/machine-learning-databases/"
#define CIFAR10_MEMBER "the archive (MD5 c32a1d4ab5d03f1284b67883e8d87530) contains it"
#define MAY_BE_PACKED "with or without gzip; MD5 without gzip"

constexpr KnownFile kKnownFiles[] = {
    {"mnist/train-images-idx3-ubyte.gz", "MNIST", MNIST "train-images-idx3-ubyte.gz", "",
     "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
    {"mnist/train-labels-idx1-ubyte.gz", "MNIST", MNIST "train-labels-idx1-ubyte.gz", "",
     "d53e105ee54ea40749a09fcbcd1e9432"},
    {"mnist/t10k-images-idx3-ubyte.gz", "MNIST", MNIST "t10k-images-idx3-ubyte.gz", "",
     "9fb629c4189551a2d022fa330f9573f3"},
    {"mnist/t10k-labels-idx1-ubyte.gz", "MNIST", MNIST "t10k-labels-idx1-ubyte.gz", "",
     "ec29112dd5afa0611ce80d1b7f02629c"},
    {"cifar10/data_batch_1.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/data_batch_2.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/data_batch_3.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/data_batch_4.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/data_batch_5.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/test_batch.bin", "CIFAR-10", CIFAR10, CIFAR10_MEMBER, ""},
    {"cifar10/data_batch_1.first4000.bin.gz", "a part of CIFAR-10", CIFAR10,
     CIFAR10_MEMBER " as data_batch_1.bin; take its first 4000 records "
                    "(head -c 12292000), with or without gzip; MD5 without gzip",
     "07704ae233cc40e200a600eed4f4e13c"},
    {"cifar10/test_batch.first1000.bin.gz", "a part of CIFAR-10", CIFAR10,
     CIFAR10_MEMBER " as test_batch.bin; take its first 1000 records "
                    "(head -c 3073000), with or without gzip; MD5 without gzip",
     "371f65da31ad652f5e24b3699a3e6515"},
    {"libsvm/a9a.gz", "a9a", LIBSVM "a9a", MAY_BE_PACKED, "fb3596510d780aaf76a06dc721d49662"},
    {"libsvm/a9a.t.gz", "a9a", LIBSVM "a9a.t", MAY_BE_PACKED, "f0bb16cf1ee3e80ff560e9d132ee647e"},
    {"tinyshakespeare/input.txt", "Tiny Shakespeare",
     "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
     "", "6fb458f1232090904fb40fe944165e91"},
    {"heart-disease/processed.cleveland.data", "UCI Heart Disease",
     UCI "heart-disease/processed.cleveland.data", "", "2d91a8ff69cfd9616aa47b59d6f843db"},
    {"heart-disease/processed.hungarian.data", "UCI Heart Disease",
     UCI "heart-disease/processed.hungarian.data", "", "22e96bee155b5973568101c93b3705f6"},
    {"heart-disease/processed.switzerland.data", "UCI Heart Disease",
     UCI "heart-disease/processed.switzerland.data", "", "9a87f7577310b3917730d06ba9349e20"},
    {"heart-disease/processed.va.data", "UCI Heart Disease", UCI "heart-disease/processed.va.data",
     "", "4249d03ca7711e84f4444768c9426170"},
    {"optdigits/optdigits.tra", "UCI Optical Recognition of Handwritten Digits",
     UCI "optdigits/optdigits.tra", "", "268ce7771f3f15afbc54402478b1d454"},
    {"optdigits/optdigits.tes", "UCI Optical Recognition of Handwritten Digits",
     UCI "optdigits/optdigits.tes", "", "a0339c30a8a5312a1b6f9e5c719dcce5"},
};

}  // namespace

std::string HowToFetch(const std::string& name) {
  for (const KnownFile& file : kKnownFiles) {
    if (name != file.name && !absl::EndsWith(name, absl::StrCat("/", file.name))) continue;
    std::string advice = absl::StrCat("it is ", file.set, ": fetch ", file.url);
    if (*file.preparation != '\0') absl::StrAppend(&advice, " (", file.preparation);
    if (*file.md5 != '\0') {
      absl::StrAppend(&advice, *file.preparation == '\0' ? " (MD5 " : " ", file.md5);
    }
    return absl::StrCat(advice, ")");
  }
  return "";
}

}  // namespace leeway
