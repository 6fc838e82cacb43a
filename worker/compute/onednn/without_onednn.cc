// The MakeCpuLibrary of a Leeway that is built without oneDNN (cmake -DLEEWAY_ONEDNN=OFF, or it is
// not installed).
#include "worker/compute/onednn/cpu_library.h"

namespace leeway {

std::unique_ptr<CpuLibrary> MakeCpuLibrary(ThreadPool& pool) { return nullptr; }

}  // namespace leeway
