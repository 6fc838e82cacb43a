#include "worker/device/device_module.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <dlfcn.h>
#include <elf.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/status.h"

namespace leeway {
namespace {

constexpr char kFile[] = "libleeway-cuda.so";
constexpr uint32_t kDevicesMax = 64;
constexpr size_t kErrorBytes = 1000;

// Returns the string that a module wrote into a buffer.
template <size_t kBytes>
absl::string_view TextOf(const std::array<char, kBytes>& text) {
  const auto end = std::find(text.begin(), text.end(), '\0');
  return absl::string_view(text.data(), end - text.begin());
}

// Returns the status of a call of the module. `code` is the result of the module's function, and
// `error` has the message.
absl::Status StatusOf(int code, const std::array<char, kErrorBytes>& error) {
  if (code == 0) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(code), TextOf(error));
}

// Returns true if the file has all bytes that the loader would map. If the loader read beyond the
// end of a truncated file, a signal would end the process.
bool IsWholeLibrary(std::ifstream& file, uint64_t size) {
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof(header))) return false;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part{};
    if (!file.read(reinterpret_cast<char*>(&part), sizeof(part))) return false;
    if (part.p_filesz > size || part.p_offset > size - part.p_filesz) return false;
  }
  return true;
}

absl::StatusOr<const LeewayDeviceModule*> TableOf(const std::string& path) {
  const auto refuse = [&path](auto&&... why) {
    return absl::FailedPreconditionError(absl::StrCat("the GPU module ", path, " ", why...));
  };
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  // If the file cannot be read, the loader reports the reason.
  if (file && !error && !IsWholeLibrary(file, size)) {
    return refuse("is not a complete shared library: install it again");
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return refuse("cannot be loaded: ", dlerror());
  void* const entry = dlsym(library, kModuleEntry);
  if (entry == nullptr) {
    return refuse("has no ", kModuleEntry,
                  ": it is not a module of Leeway; install the module from this package");
  }
  const LeewayDeviceModule* const table = reinterpret_cast<ModuleEntry>(entry)();
  if (table == nullptr) return refuse("returned no functions: install it again");
  if (table->abi != kModuleAbi) {
    return refuse("has version ", table->abi, " of the interface, but this program has version ",
                  kModuleAbi, ": install both from one package");
  }
  if (absl::string_view(table->build) != LEEWAY_MODULE_BUILD) {
    return refuse("is of build ", table->build, ", but this program is of build ",
                  LEEWAY_MODULE_BUILD, ": install both from one package, or build them together");
  }
  return table;
}

}  // namespace

std::vector<std::string> ModulePlaces() {
  std::error_code error;
  const char* const named = std::getenv("LEEWAY_CUDA_MODULE");
  // The path must be absolute, because the loader would search its own folders for a name without a
  // folder.
  if (named != nullptr && *named != '\0') return {std::filesystem::absolute(named, error)};
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path folder = program.parent_path();
  return {folder / kFile, folder.parent_path() / "lib" / "leeway" / kFile};
}

absl::StatusOr<DeviceModule> DeviceModule::Load(const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    std::error_code error;
    if (!std::filesystem::exists(place, error)) continue;
    ASSIGN_OR_RETURN(const LeewayDeviceModule* table, TableOf(place));
    return DeviceModule(*table);
  }
  return absl::NotFoundError(
      absl::StrCat("the GPU module is not installed (", absl::StrJoin(places, ", "),
                   "): install the package that has it, or build with the CUDA toolkit"));
}

absl::StatusOr<std::vector<LeewayDeviceInfo>> DeviceModule::List(Free free) const {
  std::vector<LeewayDeviceInfo> devices(kDevicesMax);
  std::array<char, kErrorBytes> error{};
  uint32_t count = 0;
  RETURN_IF_ERROR(StatusOf(table_->list(devices.data(), kDevicesMax, free == Free::kMeasured,
                                        &count, error.data(), kErrorBytes),
                           error));
  devices.resize(std::min(count, kDevicesMax));
  // Terminates the strings, even if the module has not done so.
  for (LeewayDeviceInfo& device : devices) {
    device.name[sizeof(device.name) - 1] = '\0';
    device.pci_bus_id[sizeof(device.pci_bus_id) - 1] = '\0';
  }
  return devices;
}

absl::StatusOr<OpenedDevice> DeviceModule::Open(uint32_t index, Precision precision) const {
  std::array<char, kErrorBytes> text{};
  void* backend = nullptr;
  RETURN_IF_ERROR(StatusOf(
      table_->open(index, static_cast<uint32_t>(precision), &backend, text.data(), kErrorBytes),
      text));
  if (backend == nullptr) {
    return absl::InternalError(
        "the GPU module opened a device but returned no backend; install it again");
  }
  return OpenedDevice{std::unique_ptr<Backend>(static_cast<Backend*>(backend)),
                      std::string(TextOf(text))};
}

}  // namespace leeway
