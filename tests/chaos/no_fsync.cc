// A deliberate fault for power_cut.py: with this library preloaded nothing is made durable.
extern "C" int fsync(int) { return 0; }
extern "C" int fdatasync(int) { return 0; }
