# Sets DLPACK_INCLUDE_DIR to a folder that holds dlpack/dlpack.h: from the apache-tvm-ffi package (a build requirement),
# else from an installed torch. Neither package is imported: only its place is looked up.
find_package(Python COMPONENTS Interpreter REQUIRED)
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c [=[
import importlib.util
for name in ("tvm_ffi", "torch"):
    spec = importlib.util.find_spec(name)
    if spec and spec.submodule_search_locations:
        print(spec.submodule_search_locations[0] + "/include", end=";")
]=]
  OUTPUT_VARIABLE dlpack_candidates
  COMMAND_ERROR_IS_FATAL ANY
)
find_path(DLPACK_INCLUDE_DIR NAMES dlpack/dlpack.h PATHS ${dlpack_candidates} NO_DEFAULT_PATH)
if(NOT DLPACK_INCLUDE_DIR)
  find_file(DLPACK_HEADER_OF_TORCH NAMES ATen/dlpack.h PATHS ${dlpack_candidates} NO_DEFAULT_PATH)
  if(DLPACK_HEADER_OF_TORCH)
    # A header that forwards to torch's: its own folder also holds a pybind11, which would hide the one built against.
    set(DLPACK_INCLUDE_DIR "${CMAKE_BINARY_DIR}/dlpack_header")
    file(CONFIGURE OUTPUT "${DLPACK_INCLUDE_DIR}/dlpack/dlpack.h"
         CONTENT "#include \"@DLPACK_HEADER_OF_TORCH@\"\n" @ONLY)
  endif()
endif()
if(NOT DLPACK_INCLUDE_DIR)
  message(FATAL_ERROR
    "dlpack/dlpack.h was not found for ${Python_EXECUTABLE}: neither apache-tvm-ffi nor torch provides it; "
    "run `pip install apache-tvm-ffi` in this environment, or pass -DDLPACK_INCLUDE_DIR=<folder>.")
endif()
