// cuInit and questions about devices.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "api.hpp"
#include "call.hpp"

namespace fake {
namespace {

Result check(const World& w, Device device) {
  return device >= 0 && device < w.settings.devices ? success : invalid_device;
}

/// The attributes a program may ask for, with the values of an ordinary PCIe card.
int attribute_of(const World& w, int attribute, Device device, bool& known) {
  const std::map<int, int> values{{1, 1024},
                                  {16, 132},
                                  {17, 0},
                                  {18, 0},
                                  {19, 1},
                                  {20, 0},
                                  {31, 1},
                                  {33, device + 1},
                                  {34, 0},
                                  {35, 0},
                                  {40, 2},
                                  {41, 1},
                                  {50, 0},
                                  {75, 9},
                                  {76, 0},
                                  {78, 1},
                                  {86, 0},
                                  {88, 0},
                                  {91, w.settings.same_host_pointers},
                                  {98, 0},
                                  {99, w.settings.register_supported},
                                  {100, 0},
                                  {101, 0},
                                  {113, w.settings.read_only_register},
                                  {115, 1},
                                  {117, 1},
                                  {130, 0},
                                  {131, -1},
                                  {134, 0}};
  const auto found = values.find(attribute);
  known = found != values.end();
  return known ? found->second : 0;
}

}  // namespace

Result cuInit(unsigned flags) {
  return call("cuInit", Needs::nothing, no_arguments, [&](World& w, Lock&) {
    if (w.owner != 0 && w.owner != getpid()) return not_initialized;
    if (flags != 0) return invalid_value;
    if (w.settings.init_result != success) return w.settings.init_result;
    w.initialized = true;
    w.owner = getpid();
    return success;
  });
}

Result cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", Needs::nothing, no_arguments, [&](World& w, Lock&) {
    if (version == nullptr) return invalid_value;
    *version = w.settings.driver_version;
    return success;
  });
}

Result cuDeviceGet(Device* device, int ordinal) {
  return call(
      "cuDeviceGet", Needs::init, [&](World&) { return text(" ", ordinal); },
      [&](World& w, Lock&) {
        if (device == nullptr) return invalid_value;
        *device = ordinal;
        return check(w, ordinal);
      });
}

Result cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", Needs::init, no_arguments, [&](World& w, Lock&) {
    if (count == nullptr) return invalid_value;
    *count = w.settings.devices;
    return success;
  });
}

Result cuDeviceGetName(char* name, int size, Device device) {
  return call(
      "cuDeviceGetName", Needs::init, [&](World&) { return text(" ", device); },
      [&](World& w, Lock&) {
        if (name == nullptr || size <= 0) return invalid_value;
        std::snprintf(name, static_cast<std::size_t>(size), "Simulated device %d", device);
        return check(w, device);
      });
}

Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  const auto describe = [&](World&) { return text(" attribute=", attribute, " device=", device); };
  return call("cuDeviceGetAttribute", Needs::init, describe, [&](World& w, Lock&) {
    if (value == nullptr) return invalid_value;
    if (check(w, device) != success) return invalid_device;
    bool known = false;
    const int answer = attribute_of(w, attribute, device, known);
    if (!known) return invalid_value;
    *value = answer;
    return success;
  });
}

Result cuDeviceGetUuid(Uuid* uuid, Device device) {
  return call(
      "cuDeviceGetUuid", Needs::init, [&](World&) { return text(" ", device); },
      [&](World& w, Lock&) {
        if (uuid == nullptr) return invalid_value;
        if (check(w, device) != success) return invalid_device;
        std::memcpy(uuid->bytes, "fake-cuda-device", 16);
        uuid->bytes[15] = static_cast<unsigned char>(device);
        return success;
      });
}

Result cuDeviceGetPCIBusId(char* id, int size, Device device) {
  return call(
      "cuDeviceGetPCIBusId", Needs::init, [&](World&) { return text(" ", device); },
      [&](World& w, Lock&) {
        if (id == nullptr || size < 13) return invalid_value;
        if (check(w, device) != success) return invalid_device;
        std::snprintf(id, static_cast<std::size_t>(size), "0000:%02X:00.0", device + 1);
        return success;
      });
}

}  // namespace fake
